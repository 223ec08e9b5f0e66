/** The targets' table, measured on this machine. */
@NullMarked
package io.cuvette.cli.bench;

import org.jspecify.annotations.NullMarked;

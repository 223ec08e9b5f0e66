/** The cuvette command: its options, what it prints, and the tour. */
@NullMarked
package io.cuvette.cli;

import org.jspecify.annotations.NullMarked;

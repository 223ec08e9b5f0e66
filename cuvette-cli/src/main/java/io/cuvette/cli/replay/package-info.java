/** Recorded allocation traces through the pools. */
@NullMarked
package io.cuvette.cli.replay;

import org.jspecify.annotations.NullMarked;

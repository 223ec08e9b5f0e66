/** How much queued work of a simulated device runs, and which stream is next, by the seed. */
@NullMarked
package io.cuvette.sim.internal.pace;

import org.jspecify.annotations.NullMarked;

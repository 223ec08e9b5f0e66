/** When the queued work of a simulated device runs, and in which order. */
@NullMarked
package io.cuvette.sim.internal.schedule;

import org.jspecify.annotations.NullMarked;

/** The pools of a driver: what they hold, what is free in which order, and who may touch it. */
@NullMarked
package io.cuvette.sim.internal.pool;

import org.jspecify.annotations.NullMarked;

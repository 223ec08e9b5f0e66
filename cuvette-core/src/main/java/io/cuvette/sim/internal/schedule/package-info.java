/** The streams and queues of simulated devices, and how what is queued there runs. */
@NullMarked
package io.cuvette.sim.internal.schedule;

import org.jspecify.annotations.NullMarked;

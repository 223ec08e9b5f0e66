/** What is queued in simulated devices: operations, streams, queues of the hardware. */
@NullMarked
package io.cuvette.sim.internal.queue;

import org.jspecify.annotations.NullMarked;

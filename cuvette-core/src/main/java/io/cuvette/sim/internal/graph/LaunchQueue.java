package io.cuvette.sim.internal.graph;

import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimStream;

/** What launches need of the driver. Guarded by the driver's lock. */
public interface LaunchQueue {
  /** Queues an operation; returns it. */
  SimOp queue(SimOp op);

  /** Ends an operation that was never queued, for those that wait for it. */
  void drop(SimOp op);

  /** A stream for one branch of a launch, which programs do not see. */
  SimStream lane(SimDevice device);

  /** The time of the host. */
  long hostNanos();
}

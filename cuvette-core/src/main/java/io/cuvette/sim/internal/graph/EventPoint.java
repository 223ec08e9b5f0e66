package io.cuvette.sim.internal.graph;

import io.cuvette.sim.internal.queue.SimOp;
import org.jspecify.annotations.Nullable;

/** An event as a graph knows it. Guarded by the driver's lock. */
public interface EventPoint {
  /** An operation is its last record from now on. */
  void recorded(SimOp op);

  /** The last record outside of captures, if there was one. */
  @Nullable SimOp lastRecord();
}

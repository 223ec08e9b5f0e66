package io.cuvette.sim.internal.memory;

import io.cuvette.sim.internal.schedule.SimDevice;

/** What a pool, or a graph, knows about a block of it. Guarded by the driver's lock. */
public interface BlockUse {
  /** Whether the operation that allocates is done: only work behind it may use the memory. */
  boolean isAllocated();

  /** What a device may do with the memory, by CUmemAccess_flags. */
  int access(SimDevice device);
}

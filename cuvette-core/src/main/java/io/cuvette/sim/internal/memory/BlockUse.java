package io.cuvette.sim.internal.memory;

import io.cuvette.sim.internal.queue.SimDevice;

/** What a pool, a graph or a mapping knows about a block of it. Guarded by the driver's lock. */
public interface BlockUse {
  /** Whether the operation that allocates is done: only work behind it may use the memory. */
  boolean isAllocated();

  /** What a device may do with all bytes of a range of the block, by CUmemAccess_flags. */
  int access(SimDevice device, long offset, long bytes);

  /** What the block is in, as messages name it. */
  String kind();
}

package io.cuvette.sim.internal.memory;

/** What a pool knows about a block of it. Guarded by the driver's lock. */
public interface BlockUse {
  /** Whether the operation that allocates is done: only work behind it may use the memory. */
  boolean isAllocated();
}

package io.cuvette.sim.internal.queue;

/** What an operation holds until it is done. Guarded by the driver's lock. */
public interface HeldMemory {
  /** An operation that uses it is done, or never will be. */
  void done();
}

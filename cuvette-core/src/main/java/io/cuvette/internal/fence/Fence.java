package io.cuvette.internal.fence;

/** Knows when some use of memory is over. Thread-safe. */
public interface Fence {

  /** Asks without waiting; true for good once it was. */
  boolean isDone();

  /** Releases what it was made of, if nobody else needs it: it is not queried again. */
  default void abandon() {}

  /** Waits for it; returns at once if that cannot be waited for. */
  void await();
}

package io.cuvette.internal.fence;

/** Knows when some use of memory is over. Thread-safe. */
public interface Fence {

  /** Asks without waiting; true for good once it was. */
  boolean isDone();

  /** Gives back what it was made of, if it is for nobody else: nobody will ask. */
  default void abandon() {}

  /** Waits for it; returns at once if that cannot be waited for. */
  void await();
}

package io.cuvette.internal.stream;

import org.jspecify.annotations.Nullable;

/**
 * Releases closed memory once no graph can use it any more. Thread-safe.
 *
 * @param <B> the kind of memory
 */
public interface FreesAfterGraphs<B extends UsedMemory> {
  /**
   * Releases memory, now or later.
   *
   * @param of the stream in whose order it may be used again; null for none
   */
  void free(B block, @Nullable DriverStream of);

  boolean isEmpty();

  /** Releases what is done by now. */
  void poll();
}

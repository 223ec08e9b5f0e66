package io.cuvette;

/** A pool that caches memory from upstream, as its owner and the collector know it. Thread-safe. */
interface CachingPool {
  /** Frees what is cached and rejects further allocations; buffers in use stay valid. */
  void shut();

  /** The bytes that it holds from upstream. */
  long heldBytes();

  /** For the end of the {@link Cuda}: closes the buffers in use. */
  void endLent();

  /**
   * Frees all memory, after {@link #endLent} of all pools: one's memory can be a buffer of another.
   */
  void destroy();
}

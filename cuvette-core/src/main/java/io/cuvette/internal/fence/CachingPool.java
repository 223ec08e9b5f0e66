package io.cuvette.internal.fence;

import io.cuvette.internal.session.Device;
import org.jspecify.annotations.Nullable;

/** A pool that caches memory from upstream, as other pools know it. Thread-safe. */
public interface CachingPool {
  /** Whether it is of page-locked memory, and not of devices'. */
  boolean isOfHost();

  /**
   * Releases what it holds free.
   *
   * @param device the one whose memory is wanted; null in a pool of page-locked memory
   * @return the bytes released
   */
  long release(@Nullable Device device);

  /** Once closed: takes back what streams no longer use, if nobody else does. */
  void settleIfClosed();

  /** The same once the streams are done with it. */
  void awaitIfClosed(@Nullable Device device);

  /** Whether the collector has found the object of its user, and nobody has closed it. */
  boolean isForgotten();
}

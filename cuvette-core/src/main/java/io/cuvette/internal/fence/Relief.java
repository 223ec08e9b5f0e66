package io.cuvette.internal.fence;

import io.cuvette.internal.session.Device;
import org.jspecify.annotations.Nullable;

/**
 * What pools release for each other when memory is short. They are known here from their making to
 * their end. Thread-safe.
 */
public interface Relief {
  /** Remembers a caching pool. */
  void add(CachingPool pool);

  /** Forgets a pool. */
  void remove(CachingPool pool);

  /** Reclaims what waited for streams in closed pools, from which nothing more is allocated. */
  void settleClosed();

  /** Waits, a second at most, for what code outside of Java has given back. */
  void awaitReturns();

  /**
   * Waits for what was freed in pools of all kinds, closed ones too, and given back.
   *
   * @param device null for page-locked memory
   */
  void awaitFrees(@Nullable Device device);

  /**
   * Releases what caching pools hold free, and for a device what the driver's pools keep.
   *
   * @param device null for page-locked memory
   * @return the bytes of the caching pools
   */
  long releaseCached(@Nullable Device device);

  /** Whether the collector has found a pool that was not closed yet. */
  boolean hasForgottenPools();
}

package io.cuvette.internal.share;

import io.cuvette.internal.ordered.DriverPool;
import org.jspecify.annotations.Nullable;

/**
 * What a memory resource stands on.
 *
 * @param sharing by which other processes use the pool; null if they do not
 */
public record PoolSource(DriverPool pool, @Nullable PoolSharing sharing) {
  /** For this process alone. */
  public static PoolSource unshared(DriverPool pool) {
    return new PoolSource(pool, null);
  }
}

package io.cuvette.internal.driverpool;

import io.cuvette.internal.base.Failures;
import org.jspecify.annotations.Nullable;

/**
 * What a memory resource stands on.
 *
 * @param sharing by which other processes use the pool; null if they do not
 */
public record PoolSource(DriverPool pool, @Nullable PoolExport sharing) {
  /** For this process alone. */
  public static PoolSource unshared(DriverPool pool) {
    try {
      return new PoolSource(pool, null);
    } catch (OutOfMemoryError e) {
      if (pool.isOwned()) {
        pool.abandon(e);
      }
      throw e;
    }
  }

  /** Rejects further allocations, and closes the handle; the pool goes with its last memory. */
  public void close() {
    Failures failures = new Failures();
    failures.run(pool::close);
    if (sharing != null) {
      failures.run(sharing.handle()::close);
    }
    failures.throwFirst();
  }
}

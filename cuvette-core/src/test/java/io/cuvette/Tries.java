package io.cuvette;

import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * Tries again what a thread can miss that gets no processor: what the library does for a bounded
 * time only, and the collector. Stateless.
 */
final class Tries {
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(30);
  private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

  private Tries() {}

  /** Whether one of several tries succeeds, of which none begins later than half a minute. */
  static boolean oneSucceeds(Callable<Boolean> attempt) throws Exception {
    long start = System.nanoTime();
    boolean succeeds = attempt.call();
    while (!succeeds && System.nanoTime() - start < PATIENCE_NANOS) {
      succeeds = attempt.call();
    }
    return succeeds;
  }

  /** Whether something is gone after a collection; another thread may have it a moment longer. */
  static boolean isCollected(BooleanSupplier isGone) {
    long start = System.nanoTime();
    System.gc();
    while (!isGone.getAsBoolean()) {
      if (System.nanoTime() - start > PATIENCE_NANOS) {
        return false;
      }
      LockSupport.parkNanos(PAUSE_NANOS);
      System.gc();
    }
    return true;
  }
}

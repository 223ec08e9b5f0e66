package io.cuvette;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Waits for latches where nothing checked may be thrown, as in callbacks. Stateless. */
public final class Latches {
  private static final long PATIENCE_SECONDS = 60;

  private Latches() {}

  /** Returns once a latch is open; fails after a minute, or if the thread is interrupted. */
  public static void await(CountDownLatch latch) {
    try {
      if (!latch.await(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        throw new AssertionError("closed for a minute: " + latch);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted", e);
    }
  }
}

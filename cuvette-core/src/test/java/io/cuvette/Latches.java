package io.cuvette;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Waits for latches where nothing checked may be thrown, as in callbacks. Stateless. */
public final class Latches {
  private static final long PATIENCE_SECONDS = 60;

  /** How often a thread looks before it makes room for others. */
  private static final int SPINS = 10_000;

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

  /** Returns as soon as can be once a latch is open; who opens it is known to be on its way. */
  @SuppressWarnings("ThreadPriorityCheck") // where there are few processors, the other needs this
  public static void spin(CountDownLatch latch) {
    for (int i = 0; latch.getCount() > 0; i++) {
      if (i < SPINS) {
        Thread.onSpinWait();
      } else {
        Thread.yield();
      }
    }
  }
}

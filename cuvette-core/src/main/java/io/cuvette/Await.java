package io.cuvette;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/** Waits for what other threads do in a moment. Stateless. */
final class Await {
  private static final long LOOK_AGAIN_NANOS = 20_000;

  private Await() {}

  /** Returns once a count is 0. */
  @SuppressWarnings("ThreadPriorityCheck") // the yield frees a carrier, nothing more
  static void zero(AtomicInteger count) {
    while (count.get() > 0) {
      Thread.yield(); // parking an interrupted thread returns at once
      LockSupport.parkNanos(count, LOOK_AGAIN_NANOS);
    }
  }
}

package io.cuvette.internal.base;

import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Waits for what other threads do in a moment. Stateless. */
public final class Await {
  private static final long FIRST_PAUSE_NANOS = 1_000;
  private static final long LONGEST_PAUSE_NANOS = 50_000;

  private Await() {}

  /** Returns once a condition holds. */
  public static void until(BooleanSupplier condition) {
    boolean _ = until(condition, Long.MAX_VALUE);
  }

  /** Returns whether a condition holds, at the latest after some time; keeps an interrupt. */
  @SuppressWarnings("ThreadPriorityCheck") // the yield frees a carrier, nothing more
  public static boolean until(BooleanSupplier condition, long nanos) {
    long start = System.nanoTime();
    long pause = FIRST_PAUSE_NANOS;
    boolean interrupted = false;
    boolean holds = condition.getAsBoolean();
    while (!holds && System.nanoTime() - start < nanos) {
      // Else parking returns at once, and a virtual thread keeps its carrier from the others.
      interrupted |= Thread.interrupted();
      Thread.yield();
      LockSupport.parkNanos(condition, pause);
      pause = Math.min(2 * pause, LONGEST_PAUSE_NANOS);
      holds = condition.getAsBoolean();
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    return holds;
  }
}

package io.cuvette.sim.internal.kernel;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Notices a kernel's function that waits for another Java thread. That one may wait for the grid,
 * which holds the driver's lock until it has ended. For one thread.
 */
final class FunctionWatch {
  private static final int LOOKS = 16;
  private static final long LONGEST_LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private final long patienceNanos;
  private final long lookNanos;
  private @Nullable KernelRun seen;
  private long seenChanges;
  private long since;
  private int looks;
  private int waits;

  /** A watch; the patience is positive. */
  FunctionWatch(Duration patience) {
    this.patienceNanos = patience.toNanos();
    this.lookNanos = Math.clamp(patienceNanos / LOOKS, 1, LONGEST_LOOK_NANOS);
  }

  /** How often to look. */
  long lookNanos() {
    return lookNanos;
  }

  /**
   * Looks at the thread whose function runs.
   *
   * @param changes how often a function began to run, or to run again
   * @return whether it waited at most looks of a long time, in which no other ran
   */
  boolean waitsTooLong(KernelRun thread, long changes) {
    long now = System.nanoTime();
    if (thread != seen || changes != seenChanges) {
      seen = thread;
      seenChanges = changes;
      begin(now);
      return false;
    }
    looks++;
    waits += thread.isWaiting() ? 1 : 0;
    boolean isLong = now - since > patienceNanos;
    boolean result = isLong && waits > looks / 2;
    if (isLong) {
      begin(now);
    }
    return result;
  }

  private void begin(long now) {
    since = now;
    looks = 0;
    waits = 0;
  }
}

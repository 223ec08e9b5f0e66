package io.cuvette.internal.lifetime;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Looks for memory of forgotten buffers, with the help of the garbage collector. It is made when
 * memory is found to be missing: a collection that began since then, for whichever thread, is
 * enough. Confined to a thread.
 */
public final class Reclaim {
  private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long LONGEST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(512);

  private static final int MOST_ROUNDS = 64;

  private final Collector collector = Collector.PROCESS;
  private final LeakTracker leaks;

  /** The last collection that had begun, and how much had been forgotten and found, then. */
  private long last;

  private long foundBefore;

  public Reclaim(LeakTracker leaks) {
    this.leaks = leaks;
    note();
  }

  private void note() {
    last = collector.begun();
    foundBefore = leaks.found();
  }

  /**
   * Searches again until memory is found, or a collection that began after this was made has found
   * nothing forgotten. What other threads are faster to take is no reason to give up.
   *
   * @param forgotten whether the collector has found a buffer that nobody has taken back yet
   * @param again searches; null if memory is still missing
   */
  public <T> @Nullable T search(BooleanSupplier forgotten, Supplier<@Nullable T> again) {
    if (leaks.queue == null) {
      return again.get();
    }
    T found = searchOnce(forgotten, again);
    for (int round = 1; found == null && foundSome() && round < MOST_ROUNDS; round++) {
      note();
      found = searchOnce(forgotten, again);
    }
    if (found != null && foundSome()) {
      collector.helped();
    }
    return found;
  }

  private boolean foundSome() {
    return leaks.found() != foundBefore;
  }

  private <T> @Nullable T searchOnce(BooleanSupplier forgotten, Supplier<@Nullable T> again) {
    T found;
    boolean isCollected;
    do {
      isCollected = collector.hasEndedSince(last);
      if (!isCollected) {
        collector.collectOrJoin();
        isCollected = collector.hasEndedSince(last);
      }
      found = takeBack(forgotten, again);
    } while (found == null && !isCollected);
    return found;
  }

  /** Waits longer each time, in all about a second, and only for what is known to come. */
  private <T> @Nullable T takeBack(BooleanSupplier forgotten, Supplier<@Nullable T> again) {
    int taken = leaks.drain();
    T found = again.get();
    long pause = FIRST_PAUSE_NANOS;
    while (found == null
        && pause <= LONGEST_PAUSE_NANOS
        && (taken > 0 || leaks.isTakingBack() || forgotten.getAsBoolean())) {
      if (taken == 0) {
        pause(pause);
        pause *= 2;
      }
      taken = leaks.drain();
      found = again.get();
    }
    return found;
  }

  private static void pause(long nanos) {
    boolean interrupted = Thread.interrupted(); // else parking returns at once
    if (interrupted) {
      LockSupport.parkNanos(1); // so it does for what the interrupt left, once
    }
    LockSupport.parkNanos(nanos);
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}

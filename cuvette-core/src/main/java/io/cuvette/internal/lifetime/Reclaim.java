package io.cuvette.internal.lifetime;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Looks for memory of forgotten buffers, with the help of the garbage collector. Stateless. */
public final class Reclaim {
  private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long LONGEST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(512);

  private static final int MOST_ROUNDS = 64;

  private Reclaim() {}

  /**
   * Searches again until memory is found, or a collection that began after this call has found
   * nothing forgotten. What other threads are faster to take is no reason to give up.
   *
   * @param forgotten whether the collector has found a buffer that nobody has taken back yet
   * @param again searches; null if memory is still missing
   */
  public static <T> @Nullable T search(
      LeakTracker leaks, BooleanSupplier forgotten, Supplier<@Nullable T> again) {
    if (leaks.queue == null) {
      return again.get();
    }
    T found;
    long before;
    int rounds = 0;
    do {
      before = leaks.found();
      found = searchOnce(leaks, forgotten, again);
      rounds++;
    } while (found == null && leaks.found() != before && rounds < MOST_ROUNDS);
    if (found != null) {
      Collector.PROCESS.helped();
    }
    return found;
  }

  private static <T> @Nullable T searchOnce(
      LeakTracker leaks, BooleanSupplier forgotten, Supplier<@Nullable T> again) {
    Collector collector = Collector.PROCESS;
    long last = collector.begun();
    T found = null;
    while (found == null && !collector.hasEndedSince(last)) {
      collector.collectOrJoin();
      found = takeBack(leaks, forgotten, again);
    }
    return found;
  }

  /** Waits longer each time, in all about a second, and only for what is known to come. */
  private static <T> @Nullable T takeBack(
      LeakTracker leaks, BooleanSupplier forgotten, Supplier<@Nullable T> again) {
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
    LockSupport.parkNanos(nanos);
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}

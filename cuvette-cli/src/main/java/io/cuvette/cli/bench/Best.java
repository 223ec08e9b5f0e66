package io.cuvette.cli.bench;

import java.util.function.IntToLongFunction;

/** Times loops: warmed up first, then the fastest of some repetitions. Immutable. */
final class Best {
  private static final int QUICK = 20;
  private static final int REPETITIONS = 7;
  private static final long WARM_UP_NANOS = 150_000_000L;

  /** So many turns compile the code; slow ones are not waited for longer than some warm-ups. */
  private static final int WARM_UP_TURNS = 100_000;

  private static final int PATIENCE = 4;

  /** One repetition takes so long at least. */
  private static final long ENOUGH_NANOS = 20_000_000L;

  private static final int MOST_TURNS = 1 << 24;

  private final boolean quick;

  /** Quick measuring does a twentieth of the work: enough to see that it runs. */
  Best(boolean quick) {
    this.quick = quick;
  }

  /** A loop of a number of turns, written out by the caller so that only its body is timed. */
  @FunctionalInterface
  interface Loop {
    void run(int turns);
  }

  /** Whether a twentieth of the work is enough. */
  boolean isQuick() {
    return quick;
  }

  /** How many repetitions count. */
  int repetitions() {
    return quick ? 1 : REPETITIONS;
  }

  /** The turns of one repetition. */
  int turns(int wanted) {
    return quick ? Math.max(1, wanted / QUICK) : wanted;
  }

  /** The nanoseconds of one turn. */
  double nanos(int wanted, Loop loop) {
    int turns = turns(wanted);
    long start = System.nanoTime();
    long warmUp = quick ? 0 : WARM_UP_NANOS;
    do {
      loop.run(turns);
    } while (System.nanoTime() - start < warmUp);
    double best = Double.MAX_VALUE;
    for (int i = 0; i < repetitions(); i++) {
      long before = System.nanoTime();
      loop.run(turns);
      best = Math.min(best, (double) (System.nanoTime() - before) / turns);
    }
    return best;
  }

  /** The nanoseconds of one turn, of as many as take long enough to be timed. */
  double nanos(Loop loop) {
    int turns = enough(n -> timed(1, n, loop, () -> {}));
    double best = Double.MAX_VALUE;
    for (int i = 0; i < repetitions(); i++) {
      best = Math.min(best, (double) timed(1, turns, loop, () -> {}) / turns);
    }
    return best;
  }

  /**
   * Warms up, until the code is compiled or much time has passed, and finds how many turns take
   * long enough to be timed.
   */
  int enough(IntToLongFunction nanosOfTurns) {
    int part = quick ? QUICK : 1;
    long start = System.nanoTime();
    long done = 0;
    for (int turns = 1; ; ) {
      boolean isLong = nanosOfTurns.applyAsLong(turns) >= ENOUGH_NANOS / part;
      done += turns;
      long spent = (System.nanoTime() - start) * part;
      boolean isWarm = done * part >= WARM_UP_TURNS || spent >= WARM_UP_NANOS * PATIENCE;
      if (!isLong && turns < MOST_TURNS) {
        turns *= 2;
      } else if (isWarm && spent >= WARM_UP_NANOS) {
        return turns;
      }
    }
  }

  /**
   * The nanoseconds of one turn of series; what happens after each, such as waiting for a device,
   * is not timed.
   */
  double nanosOfSeries(int wanted, int each, Loop loop, Runnable after) {
    int series = Math.max(1, turns(wanted) / each);
    long start = System.nanoTime();
    long warmUp = quick ? 0 : WARM_UP_NANOS;
    do {
      timed(series, each, loop, after);
    } while (System.nanoTime() - start < warmUp);
    double best = Double.MAX_VALUE;
    for (int i = 0; i < repetitions(); i++) {
      best = Math.min(best, (double) timed(series, each, loop, after) / series / each);
    }
    return best;
  }

  private static long timed(int series, int each, Loop loop, Runnable after) {
    long nanos = 0;
    for (int i = 0; i < series; i++) {
      long before = System.nanoTime();
      loop.run(each);
      nanos += System.nanoTime() - before;
      after.run();
    }
    return nanos;
  }
}

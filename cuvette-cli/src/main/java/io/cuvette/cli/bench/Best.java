package io.cuvette.cli.bench;

/** Times loops: warmed up first, then the fastest of some repetitions. Immutable. */
final class Best {
  private static final int QUICK = 20;
  private static final int REPETITIONS = 7;
  private static final long WARM_UP_NANOS = 150_000_000L;

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

package io.cuvette.cli.bench;

/** Times loops: warmed up first, then the fastest of some repetitions. Stateless. */
final class Best {
  private static final int REPETITIONS = 7;
  private static final long WARM_UP_NANOS = 150_000_000L;

  private Best() {}

  /** A loop of a number of turns, written out by the caller so that only its body is timed. */
  @FunctionalInterface
  interface Loop {
    void run(int turns);
  }

  /** The nanoseconds of one turn. */
  static double nanos(int turns, Loop loop) {
    long start = System.nanoTime();
    do {
      loop.run(turns);
    } while (System.nanoTime() - start < WARM_UP_NANOS);
    double best = Double.MAX_VALUE;
    for (int i = 0; i < REPETITIONS; i++) {
      long before = System.nanoTime();
      loop.run(turns);
      best = Math.min(best, (double) (System.nanoTime() - before) / turns);
    }
    return best;
  }
}

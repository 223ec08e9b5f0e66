package io.cuvette.benchmarks;

/**
 * Times a loop as the anchors' programs do: one repetition to warm up for each that counts, and of
 * those the fastest. Stateless.
 */
final class BestOf {
  private BestOf() {}

  /** A loop of a number of turns, written out by the caller so that only its body is timed. */
  @FunctionalInterface
  interface Loop {
    void run(int turns);
  }

  /** The nanoseconds of one turn. */
  static double nanosPerTurn(int turns, int repetitions, Loop loop) {
    for (int i = 0; i < repetitions; i++) {
      loop.run(turns);
    }
    double best = Double.MAX_VALUE;
    for (int i = 0; i < repetitions; i++) {
      long start = System.nanoTime();
      loop.run(turns);
      best = Math.min(best, (double) (System.nanoTime() - start) / turns);
    }
    return best;
  }
}

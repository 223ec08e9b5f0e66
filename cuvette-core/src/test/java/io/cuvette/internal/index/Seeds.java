package io.cuvette.internal.index;

import java.util.SplittableRandom;
import java.util.function.Consumer;

/** Runs a check with many seeds, or with the one of {@code -Dcuvette.seed}. Stateless. */
public final class Seeds {
  private Seeds() {}

  public static void forEach(int count, Consumer<SplittableRandom> check) {
    Long only = Long.getLong("cuvette.seed");
    if (only != null) {
      run(only, check);
      return;
    }
    for (long seed = 1; seed <= count; seed++) {
      run(seed, check);
    }
  }

  private static void run(long seed, Consumer<SplittableRandom> check) {
    try {
      check.accept(new SplittableRandom(seed));
    } catch (RuntimeException | AssertionError failure) {
      throw new AssertionError(
          "seed=" + seed + "; rerun with -Dcuvette.seed=" + seed + ": " + failure, failure);
    }
  }
}

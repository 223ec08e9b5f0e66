package io.cuvette.mutations;

import java.util.SplittableRandom;
import java.util.function.Predicate;

/**
 * Keeps one of n changes. Whether one is kept depends on the seed and on itself alone: the same
 * ones are tried whatever else has changed. Immutable.
 *
 * @param of one of so many is kept; {@code >= 1}
 * @param seed chooses which
 */
record Sample(int of, int seed) implements Predicate<String> {
  Sample {
    if (of < 1) {
      throw new IllegalArgumentException("of: " + of + " (expected: >= 1)");
    }
  }

  @Override
  public boolean test(String change) {
    long own = ((long) seed << Integer.SIZE) ^ change.hashCode();
    return new SplittableRandom(own).nextInt(of) == 0;
  }
}

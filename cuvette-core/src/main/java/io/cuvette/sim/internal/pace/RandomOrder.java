package io.cuvette.sim.internal.pace;

import java.util.function.IntToLongFunction;
import java.util.random.RandomGenerator;

/** Chooses anew for each operation, each stream as likely as another. */
public final class RandomOrder implements Order {
  private final RandomGenerator random;

  /** Chooses by a random generator. */
  public RandomOrder(RandomGenerator random) {
    this.random = random;
  }

  @Override
  public int next(int count, IntToLongFunction id) {
    return count == 1 ? 0 : random.nextInt(count);
  }
}

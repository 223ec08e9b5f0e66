package io.cuvette.sim.internal.pace;

import java.util.function.IntToLongFunction;
import java.util.random.RandomGenerator;

/**
 * Gives each stream a random priority and runs the highest that is ready, so that all of one
 * stream's work comes before that of another. At few points all priorities are drawn again. So a
 * wait that is missing behind many operations is found as easily as one behind few: each operation
 * is not one more coin to fall right.
 */
public final class PriorityOrder implements Order {
  // Changes are 2 to 2^12 operations apart on average: from some in a short program to none.
  private static final int LONGEST = 12;

  // Of very many streams some are looked at: each step costs the same.
  private static final int MOST_COMPARED = 64;

  private final RandomGenerator random;
  private final int apart;
  private long salt;
  private int untilChange;

  /** Chooses the priorities, and how far apart the points of change are. */
  public PriorityOrder(RandomGenerator random) {
    this.random = random;
    this.apart = 1 << (2 + random.nextInt(LONGEST - 1));
    change();
  }

  private void change() {
    salt = random.nextLong();
    untilChange = 1 + random.nextInt(apart);
  }

  @Override
  public int next(int count, IntToLongFunction id) {
    if (--untilChange < 0) {
      change();
    }
    int best = 0;
    long highest = count == 1 ? 0 : priority(id.applyAsLong(0));
    for (int i = 1; i < count && i < MOST_COMPARED; i++) {
      long priority = priority(id.applyAsLong(i));
      if (priority > highest) {
        highest = priority;
        best = i;
      }
    }
    return best;
  }

  /** Mixes the bits of a stream's number; the constants are those of SplitMix64. */
  private long priority(long id) {
    long mixed = id + salt;
    mixed = (mixed ^ mixed >>> 30) * 0xBF58476D1CE4E5B9L;
    mixed = (mixed ^ mixed >>> 27) * 0x94D049BB133111EBL;
    return mixed ^ mixed >>> 31;
  }
}

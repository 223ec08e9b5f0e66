package io.cuvette.benchmarks;

import java.util.SplittableRandom;

/**
 * The sizes and slots of the random live set, the same in every program: 65,536 sizes from 1 byte
 * to 4 MiB and then as many slots of 1,024, drawn by SplitMix64 from state 1. Immutable.
 */
final class RandomWork {
  static final int SLOTS = 1024;
  static final int COUNT = 1 << 16;
  private static final long MAX_BYTES = 4L << 20;

  private final int[] sizes = new int[COUNT];
  private final int[] slots = new int[COUNT];

  RandomWork() {
    // SplittableRandom is SplitMix64 whose gamma is the golden one of the other programs.
    SplittableRandom random = new SplittableRandom(1);
    for (int i = 0; i < COUNT; i++) {
      sizes[i] = 1 + (int) Long.remainderUnsigned(random.nextLong(), MAX_BYTES);
    }
    for (int i = 0; i < COUNT; i++) {
      slots[i] = (int) Long.remainderUnsigned(random.nextLong(), SLOTS);
    }
  }

  /** The bytes to allocate at a step; after the last the first follows again. */
  int bytes(int step) {
    return sizes[step & (COUNT - 1)];
  }

  /** The slot to free and to fill at a step. */
  int slot(int step) {
    return slots[step & (COUNT - 1)];
  }
}

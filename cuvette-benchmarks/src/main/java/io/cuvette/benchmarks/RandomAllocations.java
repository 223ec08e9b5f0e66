package io.cuvette.benchmarks;

import java.util.Random;

/**
 * A plan of random allocations by the rule of RMM's benchmark of that name: twice {@code count}
 * times, draw a size of at most {@code maxMiB} MiB; allocate with 73 % as long as fewer than {@code
 * count} blocks were allocated so far and at most 16,000 MiB would be live, else free a random
 * block. Made ahead, so that drawing is not timed. Immutable.
 */
final class RandomAllocations {
  private static final long MAX_LIVE_BYTES = 16_000L << 20;
  private static final int ALLOCATE_PERCENT = 73;

  /** At least 0: allocate that many bytes; else free the block at index {@code -1 - step}. */
  private final long[] steps;

  private final int peakBlocks;
  private final long peakBytes;

  /** A block that is freed gives its place to the last one. */
  RandomAllocations(int count, int maxMiB, long seed) {
    Random random = new Random(seed);
    long[] plan = new long[2 * count];
    long[] live = new long[count];
    int blocks = 0;
    int allocated = 0;
    int most = 0;
    long bytes = 0;
    long mostBytes = 0;
    for (int i = 0; i < plan.length; i++) {
      long size = 1 + random.nextLong((long) maxMiB << 20);
      boolean room = allocated < count && bytes + size < MAX_LIVE_BYTES;
      if (blocks == 0 || (room && random.nextInt(100) < ALLOCATE_PERCENT)) {
        plan[i] = size;
        live[blocks++] = size;
        allocated++;
        bytes += size;
      } else {
        int victim = random.nextInt(blocks);
        plan[i] = -1L - victim;
        bytes -= live[victim];
        live[victim] = live[--blocks];
      }
      most = Math.max(most, blocks);
      mostBytes = Math.max(mostBytes, bytes);
    }
    steps = plan;
    peakBlocks = most;
    peakBytes = mostBytes;
  }

  int length() {
    return steps.length;
  }

  long step(int index) {
    return steps[index];
  }

  int peakBlocks() {
    return peakBlocks;
  }

  long peakBytes() {
    return peakBytes;
  }
}

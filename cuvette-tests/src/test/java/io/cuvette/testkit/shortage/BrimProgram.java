package io.cuvette.testkit.shortage;

import io.cuvette.testkit.shortage.BrimStep.Action;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/**
 * A random program that fills the memory of a device to the brim, goes on there, and checks what it
 * wrote. The same seed is the same program, whatever becomes of its steps. Immutable.
 *
 * @param seed what it is made of
 * @param restBytes what of the device's memory it plays with; the rest is taken at the start
 * @param kinds a bit for each {@link BrimSide.Source} that it uses
 * @param slots how many blocks there can be at a time
 * @param steps what it does
 */
record BrimProgram(long seed, long restBytes, int kinds, int slots, List<BrimStep> steps) {
  private static final long KIB = 1L << 10;
  private static final long MIB = 1L << 20;
  private static final int MOST_SLOTS = 600;

  /** Sizes of a program: the least, the most, and whether small ones are more frequent. */
  private record Sizes(long least, long most, boolean logarithmic) {
    private static final List<Sizes> ALL =
        List.of(
            new Sizes(MIB, 4 * MIB, false),
            new Sizes(100 * KIB, MIB, false),
            new Sizes(512, 256 * MIB, true),
            new Sizes(32 * MIB, 64 * MIB, false),
            new Sizes(1, 4 * MIB, true),
            new Sizes(2 * MIB, 2 * MIB + 1, false));

    long draw(SplittableRandom random) {
      if (!logarithmic) {
        return random.nextLong(least, most + 1);
      }
      double exponent = random.nextDouble(Math.log(least), Math.log(most));
      return Math.clamp((long) Math.exp(exponent), least, most);
    }

    long mean() {
      return logarithmic
          ? (long) ((most - least) / Math.log((double) most / least))
          : (least + most) / 2;
    }
  }

  static BrimProgram of(long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    Sizes sizes = Sizes.ALL.get(Math.floorMod(seed, Sizes.ALL.size()));
    int kinds = random.nextInt(3) == 0 ? 1 : random.nextInt(1, 8);
    // About 3 of 4 slots are full, or would be if there was room: half as much again as there is.
    long rest = Math.min(MIB << 10 + random.nextInt(3), MOST_SLOTS / 2 * sizes.mean());
    int slots = Math.clamp(2 * rest / sizes.mean(), 16, MOST_SLOTS);
    int count = Math.max(4 * slots, 500);
    List<BrimStep> steps =
        IntStream.range(0, count).mapToObj(_ -> step(random, sizes, slots)).toList();
    return new BrimProgram(seed, rest, kinds, slots, steps);
  }

  private static BrimStep step(SplittableRandom random, Sizes sizes, int slots) {
    int slot = random.nextInt(slots);
    int other = random.nextInt(slots);
    int chance = random.nextInt(100);
    if (chance < 55) {
      return new BrimStep(Action.ALLOCATE, slot, other, sizes.draw(random));
    }
    Action action =
        chance < 70
            ? Action.FREE
            : chance < 82
                ? Action.FILL
                : chance < 90
                    ? Action.COPY
                    : chance < 95
                        ? Action.READ
                        : chance < 97
                            ? Action.EVENT
                            : chance < 98 ? Action.SYNCHRONIZE : Action.STREAM;
    return new BrimStep(action, slot, other, random.nextLong());
  }
}

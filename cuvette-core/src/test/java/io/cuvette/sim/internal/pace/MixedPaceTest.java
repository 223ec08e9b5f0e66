package io.cuvette.sim.internal.pace;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeSet;
import java.util.random.RandomGenerator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** How much runs after calls: nothing after most, a few operations after others. */
class MixedPaceTest {
  private static final int CALLS = 1000;
  private static final int MOST_IN_VAIN = 16;

  /** A pace whose chance after each call is never hit. */
  private static MixedPace idle() {
    return new MixedPace(
        new RandomGenerator() {
          @Override
          public int nextInt(int bound) {
            return bound - 1;
          }

          @Override
          public long nextLong() {
            return 0;
          }
        });
  }

  @Test
  void afterSomeCalls_afewOperationsRun_rarerUnderSomeSeeds() {
    Set<Integer> sizes = new TreeSet<>();
    long[] often =
        IntStream.range(0, 100)
            .mapToLong(seed -> {
              MixedPace pace = new MixedPace(new SplittableRandom(seed));
              return IntStream.range(0, CALLS)
                  .map(_ -> pace.afterCall())
                  .filter(some -> some > 0)
                  .peek(sizes::add)
                  .count();
            })
            .sorted()
            .toArray();
    assertThat(sizes).containsExactly(1, 2, 4, 8, 16);
    assertThat(often[0]).isBetween(1L, (long) CALLS / 10);
    assertThat(often[often.length - 1]).isBetween((long) CALLS / 3, CALLS * 2L / 3);
  }

  /** So a program that does nothing else comes to an end. */
  @Test
  void afterManyQueriesInARow_oneOperationRuns_howeverTheChancesFall() {
    MixedPace pace = idle();
    for (int round = 0; round < 3; round++) {
      for (int i = 1; i < MOST_IN_VAIN; i++) {
        assertThat(pace.afterBusyQuery()).as("round %d, query %d", round, i).isZero();
      }
      assertThat(pace.afterBusyQuery()).isOne();
    }
  }

  @Test
  void queryAfterWhichSomethingRan_beginsTheRowAnew() {
    for (int seed = 0; seed < 100; seed++) {
      MixedPace pace = new MixedPace(new SplittableRandom(seed));
      MixedPace alike = new MixedPace(new SplittableRandom(seed));
      int inVain = 0;
      for (int i = 0; i < CALLS; i++) {
        int chance = alike.afterCall();
        inVain = chance > 0 ? 0 : inVain + 1;
        assertThat(pace.afterBusyQuery()).isEqualTo(inVain == MOST_IN_VAIN ? 1 : chance);
        inVain %= MOST_IN_VAIN;
      }
    }
  }
}

package io.cuvette.sim.internal.pace;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.random.RandomGenerator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Which stream runs next: long the same one, then another. */
class PriorityOrderTest {
  private static final int STEPS = 1000;

  /** How often the order goes over from one stream to another. */
  private static int changes(int seed, int streams) {
    PriorityOrder order = new PriorityOrder(new SplittableRandom(seed));
    int changes = 0;
    for (int i = 0, last = -1; i < STEPS; i++) {
      int next = order.next(streams, number -> number);
      changes += last >= 0 && next != last ? 1 : 0;
      last = next;
    }
    return changes;
  }

  @Test
  void streamGoesOn_untilOneOfFewPointsOfChange() {
    int[] changes = IntStream.range(0, 100).map(seed -> changes(seed, 3)).toArray();
    assertThat(IntStream.of(changes).filter(count -> count < STEPS / 20).count())
        .as("seeds with few changes")
        .isGreaterThan(60);
    assertThat(IntStream.of(changes).filter(count -> count > 0).count())
        .as("seeds with any")
        .isGreaterThan(60);
  }

  @Test
  void everyStream_comesFirstUnderSomeSeed() {
    assertThat(
            IntStream.range(0, 100)
                .map(seed ->
                    new PriorityOrder(new SplittableRandom(seed)).next(4, number -> 10 + number))
                .distinct()
                .sorted())
        .containsExactly(0, 1, 2, 3);
  }

  /** Whichever place it has among them. */
  @Test
  void streamThatComesFirstOfThree_comesBeforeEachOfThemAlone() {
    for (int seed = 0; seed < 20; seed++) {
      List<Integer> firsts = new ArrayList<>();
      for (long[] among : new long[][] {{1, 2, 3}, {1, 2}, {1, 3}, {2, 3}, {3, 2, 1}}) {
        PriorityOrder order = new PriorityOrder(new SplittableRandom(seed));
        firsts.add((int) among[order.next(among.length, i -> among[i])]);
      }
      int first = firsts.getFirst();
      assertThat(firsts.subList(1, 4)).as("pairs").filteredOn(each -> each == first).hasSize(2);
      assertThat(firsts.getLast()).isEqualTo(first);
    }
  }

  /** Points of change at one distance would miss programs of the same rhythm. */
  @Test
  void distancesOfPointsOfChange_areRandom_upToOneThatIsChosenFirst() {
    for (int seed = 0; seed < 20; seed++) {
      AtomicInteger changes = new AtomicInteger();
      RandomGenerator random = new SplittableRandom(seed);
      List<Integer> bounds = new ArrayList<>();
      PriorityOrder order =
          new PriorityOrder(
              new RandomGenerator() {
                @Override
                public int nextInt(int bound) {
                  bounds.add(bound);
                  return random.nextInt(bound);
                }

                @Override
                public long nextLong() {
                  changes.incrementAndGet();
                  return random.nextLong();
                }
              });
      int most = bounds.getLast();
      Set<Integer> distances = new HashSet<>();
      for (int i = 0; i < 30; i++) {
        int before = changes.get();
        int steps = 0;
        while (changes.get() == before) {
          int _ = order.next(3, number -> number);
          steps++;
        }
        distances.add(steps);
      }
      assertThat(distances).hasSizeGreaterThan(2).allMatch(steps -> steps <= most + 1);
    }
  }

  /** Each step costs the same with thousands of streams. */
  @Test
  void ofVeryManyStreams_aBoundedNumberIsCompared() {
    AtomicInteger asked = new AtomicInteger();
    int _ =
        new PriorityOrder(new SplittableRandom(1))
            .next(
                10_000,
                number -> {
                  asked.incrementAndGet();
                  return number;
                });
    assertThat(asked).hasValueLessThan(100);
  }

  @Test
  void streamAlone_isNext() {
    assertThat(changes(1, 1)).isZero();
  }
}

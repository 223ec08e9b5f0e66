package io.cuvette.sim.internal.pace;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.sim.SimulatedOptions;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** What a seed decides, and what the options decide whatever the seed is. */
class SimScheduleTest {
  private static final int SEEDS = 40;

  @Test
  void queues_areThoseOfTheOptions_elseNoneOrThoseOfAGpu() {
    Set<Integer> bySeed = new HashSet<>();
    for (int seed = -SEEDS; seed < SEEDS; seed++) {
      SimulatedOptions options = SimulatedOptions.DEFAULTS.withSeed(seed);
      bySeed.add(SimSchedule.queues(options));
      for (int queues : new int[] {0, 1, 5, 32}) {
        assertThat(SimSchedule.queues(options.withQueues(queues))).isEqualTo(queues);
      }
    }
    assertThat(bySeed).containsExactlyInAnyOrder(0, 8);
  }

  @Test
  void queuesOfAGpu_areThoseOfTwelveSeeds_ofAnyTwentyFour() {
    for (long first : new long[] {-100, -24, -5, 0, 12, 1L << 40}) {
      assertThat(
              LongStream.range(first, first + 24)
                  .map(seed -> SimSchedule.queues(SimulatedOptions.DEFAULTS.withSeed(seed)))
                  .filter(queues -> queues == 8))
          .as("from %d on", first)
          .hasSize(12);
    }
  }

  @Test
  void ordersOfTwelveSeedsInARow_arePriorityForHalfOfThem_andTheOthersForAQuarter() {
    for (long first : new long[] {-100, 0, 5}) {
      Map<Class<?>, Integer> orders = new HashMap<>();
      for (long seed = first; seed < first + 12; seed++) {
        Order order = SimSchedule.of(SimulatedOptions.DEFAULTS.withSeed(seed)).order();
        int _ = orders.merge(order.getClass(), 1, Integer::sum);
      }
      assertThat(orders)
          .containsOnly(
              Map.entry(PriorityOrder.class, 6),
              Map.entry(RandomOrder.class, 3),
              Map.entry(FairOrder.class, 3));
    }
  }

  @Test
  void fairOrder_takesEachInTurn() {
    FairOrder order = new FairOrder();
    for (int round = 0; round < 3; round++) {
      for (int next = 0; next < 3; next++) {
        assertThat(order.next(3, index -> index)).isEqualTo(next);
      }
    }
    assertThat(order.next(3, index -> index)).isZero();
    assertThat(order.next(1, index -> index)).as("the others are gone").isZero();
  }

  @Test
  void randomOrder_choosesEachStream_aboutAsOften() {
    RandomOrder order = new RandomOrder(new SplittableRandom(1));
    int[] chosen = new int[4];
    for (int i = 0; i < 4000; i++) {
      chosen[order.next(4, number -> number)]++;
      assertThat(order.next(1, number -> number)).isZero();
    }
    for (int times : chosen) {
      assertThat(times).isBetween(850, 1150);
    }
  }
}

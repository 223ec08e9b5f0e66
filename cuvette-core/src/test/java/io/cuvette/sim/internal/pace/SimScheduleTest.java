package io.cuvette.sim.internal.pace;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.sim.SimulatedOptions;
import java.util.HashSet;
import java.util.Set;
import java.util.SplittableRandom;
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

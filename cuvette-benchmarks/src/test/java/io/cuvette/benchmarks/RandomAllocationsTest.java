package io.cuvette.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RandomAllocationsTest {

  @ParameterizedTest
  @CsvSource({
    "1000, 1, 674",
    "1000, 4, 674",
    "10000, 4, 6413",
    "10000, 64, 630",
    "100000, 1, 36005"
  })
  void theLiveSet_isThatOfTheRuleWithAnotherGenerator(int count, int maxMiB, int blocks) {
    RandomAllocations plan = new RandomAllocations(count, maxMiB, 1);

    assertThat(plan.length()).isEqualTo(2 * count);
    assertThat(plan.peakBlocks()).isCloseTo(blocks, within(blocks / 10));
  }

  @Test
  void everyStep_allocatesWithinTheBoundsOrFreesALiveBlock() {
    RandomAllocations plan = new RandomAllocations(10_000, 64, 7);
    List<Long> live = new ArrayList<>();
    long bytes = 0;
    long peak = 0;
    for (int i = 0; i < plan.length(); i++) {
      long step = plan.step(i);
      if (step >= 0) {
        assertThat(step).isBetween(1L, 64L << 20);
        live.add(step);
        bytes += step;
      } else {
        int victim = (int) (-1 - step);
        assertThat(victim).isLessThan(live.size());
        bytes -= live.get(victim);
        live.set(victim, live.getLast());
        live.removeLast();
      }
      peak = Math.max(peak, bytes);
    }
    assertThat(peak).isEqualTo(plan.peakBytes()).isLessThan(16_000L << 20);
  }

  @Test
  void aBlockLargerThanTheLimit_isStillPlannedWhenNothingIsLive() {
    RandomAllocations plan = new RandomAllocations(1_000, 4_096, 3);

    assertThat(plan.step(0)).isPositive();
    assertThat(plan.peakBytes()).isLessThanOrEqualTo(16_000L << 20);
  }
}

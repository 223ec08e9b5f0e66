package io.cuvette.sim.internal.machine;

import static org.assertj.core.api.Assertions.assertThat;

import org.assertj.core.data.Percentage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What calls cost on the simulated clock, beside what was measured on an H200. */
class SimCostsTest {

  @ParameterizedTest
  @CsvSource({"1, 56.7", "64, 135.1"})
  void pairOfAllocAndFree_takesWhatWasMeasured(long mebibytes, double micros) {
    assertThat(2 * SimCosts.alloc(mebibytes << 20) / 1000.0)
        .isCloseTo(micros, Percentage.withPercentage(1));
  }

  @ParameterizedTest
  @CsvSource({"0, 200", "1, 663.6"})
  void pairOfHostAllocAndFree_takesWhatWasMeasured(long mebibytes, double micros) {
    assertThat(2 * SimCosts.hostAlloc(mebibytes << 20) / 1000.0)
        .isCloseTo(micros, Percentage.withPercentage(1));
  }

  @ParameterizedTest
  @CsvSource({"2, 9.8, 11.8", "200, 12.1, 107.7"})
  void handleOfMemory_isMadeAndReleasedInTheTimesMeasured(
      long mebibytes, double create, double release) {
    assertThat(SimCosts.create(mebibytes << 20) / 1000.0)
        .isCloseTo(create, Percentage.withPercentage(2));
    assertThat(SimCosts.release(mebibytes << 20) / 1000.0)
        .isCloseTo(release, Percentage.withPercentage(1));
  }

  @Test
  void handleOfNothing_costsTheFixedPart() {
    assertThat(SimCosts.create(0)).isEqualTo(9_800);
    assertThat(SimCosts.release(0)).isEqualTo(10_800);
    assertThat(SimCosts.create(86_000)).isEqualTo(9_801);
    assertThat(SimCosts.release(2_160)).isEqualTo(10_801);
  }

  @Test
  void poolThatGrows_paysForEachRangeThatItBegins() {
    assertThat(SimCosts.poolGrowth(32 << 20)).isEqualTo(34_400);
    assertThat(SimCosts.poolGrowth((32 << 20) + 1)).isEqualTo(2 * 34_400);
  }
}

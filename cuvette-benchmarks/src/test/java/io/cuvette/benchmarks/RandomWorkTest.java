package io.cuvette.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class RandomWorkTest {

  @Test
  void theNumbers_areThoseOfTheOtherPrograms() {
    RandomWork work = new RandomWork();

    // As anchors/python/anchor.py and anchors/c/async_pool.c draw them.
    assertThat(work.bytes(0)).isEqualTo(154_818);
    assertThat(work.bytes(1)).isEqualTo(978_024);
    assertThat(work.bytes(2)).isEqualTo(3_298_655);
    assertThat(work.slot(0)).isEqualTo(964);
    assertThat(work.slot(65_535)).isEqualTo(862);
  }

  @Test
  void theSteps_comeAgainAfterTheLast() {
    RandomWork work = new RandomWork();

    assertThat(work.bytes(RandomWork.COUNT + 5)).isEqualTo(work.bytes(5));
    assertThat(work.slot(RandomWork.COUNT + 5)).isEqualTo(work.slot(5));
  }
}

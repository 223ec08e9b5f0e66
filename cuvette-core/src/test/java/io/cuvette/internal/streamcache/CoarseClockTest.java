package io.cuvette.internal.streamcache;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** How often the clock is read, and how far behind it is what is told. */
class CoarseClockTest {
  private long time;
  private int readings;
  private final CoarseClock clock =
      new CoarseClock(() -> {
        readings++;
        return time;
      });

  private long askAfter(long nanos) {
    time += nanos;
    return clock.now();
  }

  @Test
  void questionsThatFollowEachOtherFast_shareReadings() {
    for (int i = 0; i < 6400; i++) {
      long told = askAfter(20);
      assertThat(time - told).isBetween(0L, 20L * CoarseClock.MOST_QUESTIONS);
    }
    assertThat(readings).isLessThan(120);
  }

  @Test
  void beforeAnyQuestion_tellsWhenItBegan() {
    time = 77;
    assertThat(new CoarseClock(() -> time).last()).isEqualTo(77);
    assertThat(clock.last()).isZero();
    assertThat(askAfter(CoarseClock.SELDOM_NANOS)).isEqualTo(time).isEqualTo(clock.last());
  }

  @Test
  void questionsFarApart_areEachAnsweredExactly() {
    for (int i = 0; i < 100; i++) {
      assertThat(askAfter(CoarseClock.OFTEN_NANOS)).isEqualTo(time);
    }
  }

  @Test
  void afterABurst_isExactAgain_behindTheReadingThatItShared() {
    for (int i = 0; i < 10_000; i++) {
      askAfter(20);
    }
    long second = 1_000_000_000;
    int shared = 0;
    while (askAfter(second) != time) {
      shared++;
    }
    assertThat(shared).isLessThan(CoarseClock.MOST_QUESTIONS);
    for (int i = 0; i < 100; i++) {
      assertThat(askAfter(second)).isEqualTo(time);
    }
  }

  @Test
  void isNeverAhead_norGoesBack_alsoWhenTheClockOverflows() {
    SplittableRandom random = new SplittableRandom(5);
    time = Long.MAX_VALUE - 1_000_000;
    long before = clock.now();
    for (int i = 0; i < 100_000; i++) {
      long told = askAfter(random.nextInt(1 << random.nextInt(20)));
      assertThat(time - told).isNotNegative();
      assertThat(told - before).isNotNegative();
      before = told;
    }
    assertThat(time).isNegative();
  }
}

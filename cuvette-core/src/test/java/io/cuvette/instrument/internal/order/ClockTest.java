package io.cuvette.instrument.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What clocks learn of each other, by whichever way, is what tables of numbers would know. */
class ClockTest {
  private static final int CLOCKS = 6;
  private static final int LANES = 70;

  private final Clock[] clocks = new Clock[CLOCKS];
  private final long[][] model = new long[CLOCKS][LANES];
  private final Lane[] lanes = new Lane[LANES];

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5})
  void randomSteps_areThoseOfTables(long seed) {
    Random random = new Random(seed);
    for (int i = 0; i < CLOCKS; i++) {
      clocks[i] = new Clock();
    }
    for (int i = 0; i < LANES; i++) {
      lanes[i] = lane(i);
    }
    for (int step = 0; step < 2000; step++) {
      step(random, random.nextInt(CLOCKS), random.nextInt(CLOCKS));
      for (int clock = 0; clock < CLOCKS; clock++) {
        for (int lane = 0; lane < LANES; lane++) {
          long last = model[clock][lane];
          assertThat(clocks[clock].last(lanes[lane]))
              .as("seed=%d step=%d clock=%d lane=%d", seed, step, clock, lane)
              .isEqualTo(last);
          assertThat(clocks[clock].covers(lanes[lane], last)).isTrue();
          assertThat(clocks[clock].covers(lanes[lane], last + 1)).isFalse();
        }
      }
    }
  }

  private static Lane lane(int place) {
    return new Lane(0, "lane " + place, true, new Lane.Place(place, 0));
  }

  private void step(Random random, int clock, int other) {
    switch (random.nextInt(8)) {
      case 0 -> copy(clock, other);
      case 1, 2, 3, 4 -> raise(clock, random.nextInt(LANES), random.nextInt(3));
      default -> learn(clock, other);
    }
    for (int i = 0; i < CLOCKS; i++) {
      boolean isSame = clocks[i].isAs(clocks[clock]);
      assertThat(isSame && !Arrays.equals(model[i], model[clock])).as("%d, %d", i, clock).isFalse();
    }
  }

  private void raise(int clock, int lane, int by) {
    model[clock][lane] += by;
    clocks[clock].raise(lanes[lane], model[clock][lane]);
  }

  /** In its place comes a copy of another one, which goes on by itself. */
  private void copy(int clock, int other) {
    if (clock != other) {
      clocks[clock] = clocks[other].copy();
      model[clock] = model[other].clone();
      raise(clock, 0, 1);
    }
  }

  private void learn(int clock, int other) {
    clocks[clock].merge(clocks[other]);
    for (int lane = 0; lane < LANES; lane++) {
      model[clock][lane] = Math.max(model[clock][lane], model[other][lane]);
    }
  }

  /** Else thousands of streams that learn from one each have what it knows. */
  @Test
  void clockThatLearnsAllThatAnotherKnows_isAsThatOne() {
    Clock knowing = new Clock();
    for (int place = 0; place < LANES; place++) {
      knowing.raise(lane(place), 1 + place);
    }
    Clock clock = new Clock();
    clock.raise(lane(40), 3);
    assertThat(clock.isAs(knowing)).isFalse();
    clock.merge(knowing);
    assertThat(clock.isAs(knowing)).isTrue();
    clock.raise(lane(3), 100);
    assertThat(clock.isAs(knowing)).isFalse();
    assertThat(knowing.last(lane(3))).isEqualTo(4);
  }

  @Test
  void whatIsKnown_isNotForgottenForLess() {
    Clock clock = new Clock();
    clock.raise(lane(3), 5);
    clock.raise(lane(3), 4);
    assertThat(clock.last(lane(3))).isEqualTo(5);
  }
}

package io.cuvette.instrument.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What clocks learn of each other, by whichever way, is what tables of numbers would know. */
class ClockTest {
  private static final int CLOCKS = 6;
  private static final int LANES = 4;

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
      lanes[i] = new Lane(0, "lane " + i, true);
    }
    for (int step = 0; step < 5000; step++) {
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

  /** As those of graphs, and of events, learn of one stream after the other. */
  @Test
  void clockThatLearnsForEver_forgetsStreamsThatAreGone() {
    Clock clock = new Clock();
    for (int i = 0; i < 1000; i++) {
      Lane lane = new Lane(0, "a short one", true);
      long _ = lane.next();
      clock.merge(lane.known());
      lane.retire();
    }
    List<Lane> left = new ArrayList<>();
    clock.forEach((lane, _) -> left.add(lane));
    assertThat(left).hasSizeLessThan(3);
  }

  private void step(Random random, int clock, int other) {
    Clock same = clocks[clock];
    long changes = same.changes();
    long[] before = model[clock].clone();
    switch (random.nextInt(8)) {
      case 0 -> copy(clock, other);
      case 1, 2 -> raise(clock, random.nextInt(LANES), random.nextInt(3));
      case 3, 4 -> {
        clocks[clock].merge(clocks[other]);
        learn(clock, other);
      }
      default -> follow(clock, other);
    }
    for (int lane = 0; lane < LANES; lane++) {
      if (model[clock][lane] > before[lane] && clocks[clock] == same) {
        assertThat(same.changes()).as("what learned says so").isNotEqualTo(changes);
      }
    }
  }

  private void raise(int clock, int lane, int by) {
    model[clock][lane] += by;
    clocks[clock].raise(lanes[lane], model[clock][lane]);
  }

  private void follow(int clock, int other) {
    if (clock != other) {
      clocks[clock].follow(clocks[other].frozen());
      learn(clock, other);
    }
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
    for (int lane = 0; lane < LANES; lane++) {
      model[clock][lane] = Math.max(model[clock][lane], model[other][lane]);
    }
  }

  @Test
  void clockThatFollowsOneThatKnowsNothing_keepsWhatItKnows() {
    Lane lane = new Lane(0, "a lane", true);
    Lane other = new Lane(0, "another lane", true);
    Clock knowing = new Clock();
    knowing.raise(lane, 3);
    Clock clock = new Clock();
    clock.raise(other, 4);
    clock.follow(new Clock().frozen());
    clock.follow(knowing.frozen());
    clock.follow(new Clock().frozen());
    assertThat(clock.last(lane)).isEqualTo(3);
    assertThat(clock.last(other)).isEqualTo(4);
  }

  /** A thread may ask before another one, and be the last to learn. */
  @Test
  void clockThatFollowsWhatAnotherKnewBefore_keepsWhatItLearnedSince() {
    Lane lane = new Lane(0, "a stream", true);
    Clock standard = new Clock();
    standard.raise(lane, 1);
    Clock early = standard.frozen();
    standard.raise(lane, 2);
    Clock clock = new Clock();
    clock.follow(standard.frozen());
    clock.follow(early);
    assertThat(clock.last(lane)).isEqualTo(2);
  }
}

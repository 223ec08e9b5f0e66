package io.cuvette.sim.internal.pace;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.SplittableRandom;
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

  @Test
  void streamAlone_isNext() {
    assertThat(changes(1, 1)).isZero();
  }
}

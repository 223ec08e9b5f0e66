package io.cuvette.sim.internal.pace;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** What the plain orders and paces choose. */
class TurnsTest {
  @Test
  void fairOrder_beginsWithTheFirst_andGoesRound() {
    Order order = new FairOrder();
    assertThat(IntStream.range(0, 7).map(_ -> order.next(3, i -> i)))
        .containsExactly(0, 1, 2, 0, 1, 2, 0);
    assertThat(order.next(2, i -> i)).isEqualTo(1);
    assertThat(order.next(2, i -> i)).as("fewer than before").isZero();
    assertThat(order.next(1, i -> i)).isZero();
  }

  @Test
  void eagerDevice_runsAllThatItCan_atEachLook() {
    assertThat(new EagerPace().afterCall()).isEqualTo(Pace.ALL);
    assertThat(new EagerPace().afterBusyQuery()).isEqualTo(Pace.ALL);
  }
}

package io.cuvette.internal.devicepool;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class AsksTest {
  @Test
  void soManyMayBeAsked_andThenNoneIsLeft() {
    Asks asks = new Asks(2);
    assertThat(asks.mayAsk()).isTrue();
    assertThat(asks.left()).isEqualTo(1);
    assertThat(asks.mayAsk()).isTrue();
    for (int i = 0; i < 3; i++) {
      assertThat(asks.left()).isZero();
      assertThat(asks.mayAsk()).isFalse();
    }
  }
}

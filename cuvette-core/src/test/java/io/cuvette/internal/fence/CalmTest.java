package io.cuvette.internal.fence;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** For how long what was found idle is idle. */
class CalmTest {
  private final Calm calm = new Calm();

  @Test
  void calmOfANewStream_lastsUntilAnOperationBegins() {
    assertThat(calm.lasts()).as("nothing is known").isFalse();
    calm.begin();
    assertThat(calm.lasts()).isTrue();
    calm.disturb();
    assertThat(calm.lasts()).isFalse();
  }

  @Test
  void streamThatIsIdle_isCalmAgain_andABusyOneIsNot() {
    assertThat(calm.ask(() -> 0, () -> true)).isTrue();
    assertThat(calm.lasts()).isTrue();
    assertThat(calm.ask(() -> 0, () -> false)).isFalse();
    assertThat(calm.lasts()).isFalse();
    assertThat(calm.ask(() -> 0, () -> true)).isTrue();
    assertThat(calm.lasts()).isTrue();
  }

  /** It may queue work after the answer, and has disturbed before the question. */
  @Test
  void operationThatHoldsTheStream_isNoCalm_thoughItIsIdle() {
    assertThat(calm.ask(() -> 1, () -> true)).isTrue();
    assertThat(calm.lasts()).isFalse();
  }

  @Test
  void operationThatBeginsBeforeTheAnswer_isNoCalm() {
    assertThat(calm.ask(() -> 0, this::disturbed)).isTrue();
    assertThat(calm.lasts()).isFalse();
  }

  private boolean disturbed() {
    calm.disturb();
    return true;
  }

  @Test
  void questionBesideAnother_isAnswered_andLeavesTheCalmToIt() {
    assertThat(
            calm.ask(
                () -> 0,
                () -> {
                  assertThat(calm.ask(() -> 0, () -> true)).isTrue();
                  assertThat(calm.lasts()).as("the first has no answer yet").isFalse();
                  return false;
                }))
        .isFalse();
    assertThat(calm.lasts()).isFalse();
  }
}

package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.lifetime.Ending;
import io.cuvette.internal.lifetime.LeftForLater;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What is left comes out once, each time it is left, and nothing is lost when a step throws. */
@Timeout(60)
class LeftForLaterTest {
  private final LeftForLater left = new LeftForLater();
  private final List<Ending> seen = new ArrayList<>();
  private final Ending one = thing();
  private final Ending two = thing();
  private final Ending three = thing();

  private static Ending thing() {
    return new Ending(new Object(), null, null) {
      @Override
      public String describe() {
        return "thing";
      }

      @Override
      public void release() {}
    };
  }

  @Test
  void drain_takesEachOnce_andCountsThoseThatAreDone() {
    assertThat(left.isEmpty()).isTrue();
    assertThat(left.drain(seen::add)).isZero();
    List.of(one, two, three).forEach(left::leave);
    assertThat(left.isEmpty()).isFalse();
    assertThat(
            left.drain(each -> {
              seen.add(each);
              return each != two;
            }))
        .isEqualTo(2);
    assertThat(seen).containsExactly(three, two, one);
    assertThat(seen).allMatch(each -> each.next == null);
    assertThat(left.isEmpty()).isTrue();
  }

  @Test
  void whatAStepLeavesAgain_isThereNextTime() {
    left.leave(one);
    assertThat(
            left.drain(each -> {
              left.leave(each);
              return false;
            }))
        .isZero();
    assertThat(left.isEmpty()).isFalse();
    assertThat(left.drain(seen::add)).isEqualTo(1);
    assertThat(seen).containsExactly(one);
  }

  @Test
  void stepThatThrows_keepsTheRest() {
    List.of(one, two, three).forEach(left::leave);
    assertThatThrownBy(() ->
            left.drain(_ -> {
              throw new IllegalStateException("no");
            }))
        .hasMessage("no");
    assertThat(left.drain(seen::add)).isEqualTo(2);
    assertThat(seen).containsExactlyInAnyOrder(one, two);
  }
}

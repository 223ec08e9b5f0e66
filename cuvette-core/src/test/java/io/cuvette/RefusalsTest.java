package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.base.Refusals;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Which refusals of upstream an error names. */
class RefusalsTest {
  private final Refusals refusals = new Refusals();

  @Test
  void upstreamIsAsked_untilItRefused_andAgainOnceSomethingChanged() {
    assertThat(refusals.isWorthAsking()).isTrue();
    refusals.add(new IllegalStateException("no"));
    assertThat(refusals.isWorthAsking()).isFalse();
    refusals.retry();
    assertThat(refusals.isWorthAsking()).isTrue();
  }

  @Test
  void lastRefusal_isTheCause_andSevenBeforeAreSuppressed_eachOnce() {
    List<RuntimeException> all = new ArrayList<>();
    for (int i = 0; i < 10; i++) {
      all.add(new IllegalStateException("no " + i));
      refusals.add(all.getLast());
      refusals.add(all.getLast());
    }
    RuntimeException failure = refusals.explain(new RuntimeException("out"));
    assertThat(failure).hasMessage("out").hasCause(all.getLast());
    assertThat(failure.getSuppressed())
        .containsExactly(all.subList(2, 9).toArray(Throwable[]::new));
  }

  @Test
  void withoutARefusal_thereIsNoCause() {
    assertThat(refusals.explain(new RuntimeException("out"))).hasNoCause();
  }
}

package io.cuvette.arrow;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Several closes, of which some fail: all are made, and the first failure comes out. */
class EndsTest {
  private final List<String> closed = new ArrayList<>();

  private AutoCloseable fine(String name) {
    return () -> closed.add(name);
  }

  private AutoCloseable failing(String name) {
    return () -> {
      closed.add(name);
      throw new IllegalStateException(name);
    };
  }

  private final List<AutoCloseable> some =
      List.of(fine("a"), failing("b"), fine("c"), failing("d"));

  @Test
  void failures_comeOutAfterAllAreClosed_theLaterOnesWithTheFirst() {
    assertThatThrownBy(() -> Ends.closeAll(some))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("b")
        .satisfies(e ->
            assertThat(e.getSuppressed()).extracting(Throwable::getMessage).containsExactly("d"));
    assertThat(closed).containsExactly("a", "b", "c", "d");
    assertThatCode(() -> Ends.closeAll(List.of(fine("e")))).doesNotThrowAnyException();
    assertThat(closed).endsWith("e");
  }

  @Test
  void failuresAfterAnother_areAddedToIt() {
    Exception failure = new Exception("first");
    Ends.closeAfter(failure, some);
    assertThat(closed).containsExactly("a", "b", "c", "d");
    assertThat(failure.getSuppressed()).extracting(Throwable::getMessage).containsExactly("b");
  }

  @Test
  void checkedException_isTheCauseOfWhatComesOut() {
    Exception checked = new Exception("checked");
    AutoCloseable each =
        () -> {
          throw checked;
        };
    assertThatThrownBy(() -> Ends.closeAll(List.of(each)))
        .isInstanceOf(IllegalStateException.class)
        .hasCause(checked);
  }
}

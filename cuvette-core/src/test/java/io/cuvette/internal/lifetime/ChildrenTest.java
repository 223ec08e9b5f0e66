package io.cuvette.internal.lifetime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Failures;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** In which order children end, and how often those are tried that fail. */
class ChildrenTest {
  private static final int MANY = 20;

  private final Children children = new Children();
  private final List<String> ended = new ArrayList<>();
  private final Failures failures = new Failures();

  private Runnable child(String name) {
    return () -> ended.add(name);
  }

  /** A child that fails each time. */
  private Runnable failing(RuntimeException... reasons) {
    return () -> {
      ended.add("failing");
      throw reasons[ended.size() - 1];
    };
  }

  @Test
  void whatWasMadeLast_endsFirst() {
    for (int i = 0; i < MANY; i++) {
      children.add(child("child " + i));
    }
    children.close(failures);
    assertThat(ended)
        .containsExactlyElementsOf(
            IntStream.range(0, MANY).mapToObj(i -> "child " + (MANY - 1 - i)).toList());
  }

  @Test
  void whatPoolsHaveLent_endsBeforeAllElse_thatOfTheLastPoolFirst() {
    for (int i = 0; i < MANY; i++) {
      children.addPool(child("lent " + i));
      children.add(child("child " + i));
    }
    children.close(failures);
    assertThat(ended.subList(0, MANY))
        .containsExactlyElementsOf(
            IntStream.range(0, MANY).mapToObj(i -> "lent " + (MANY - 1 - i)).toList());
  }

  @Test
  void childThatFails_isTriedOnceMore_andBothFailuresAreTold() {
    RuntimeException first = new IllegalStateException("first");
    RuntimeException second = new IllegalStateException("second");
    children.add(failing(first, second));
    children.close(failures);
    assertThat(ended).hasSize(2);
    assertThatThrownBy(failures::throwFirst).isSameAs(first).hasSuppressedException(second);
  }

  /** The driver may have freed what is another's by now. */
  @Test
  void childThatMayHaveEnded_isNotTriedAgain() {
    RuntimeException lost = new CudaException(CudaStatus.ILLEGAL_ADDRESS, "memFree", "a test");
    children.add(failing(lost));
    children.close(failures);
    assertThat(ended).hasSize(1);
    assertThatThrownBy(failures::throwFirst).isSameAs(lost).hasNoSuppressedExceptions();
  }
}

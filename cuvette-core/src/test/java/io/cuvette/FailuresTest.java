package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.base.Failures;
import io.cuvette.internal.hostcopy.PartialCopy;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Clean-up after failures of the user's code, which throws what it likes. */
class FailuresTest {
  private final Failures failures = new Failures();
  private final AtomicInteger steps = new AtomicInteger();

  @Test
  void oneExceptionThrownTwice_stopsNothing() {
    RuntimeException same = new IllegalStateException("cached");
    run(same);
    run(same);
    run(new IllegalStateException("another"));
    assertThat(steps).hasValue(3);
    assertThatThrownBy(failures::throwFirst)
        .isSameAs(same)
        .satisfies(e -> assertThat(e.getSuppressed()).hasSize(1));
  }

  @Test
  void error_stopsNothing_andIsThrownAtTheEnd() {
    Error error = new StackOverflowError();
    run(error);
    run(new IllegalStateException());
    assertThat(steps).hasValue(2);
    assertThatThrownBy(failures::throwFirst).isSameAs(error);
  }

  @Test
  void stepThatThrowsTheFailureAgain_addsNothing() {
    RuntimeException same = new IllegalStateException("cached");
    Failures.runAfter(
        same,
        () -> {
          throw same;
        });
    assertThat(same.getSuppressed()).isEmpty();
  }

  @Test
  void stepAfterAFailure_isDone_andAddsWhatItThrows_errorsToo() {
    RuntimeException failure = new IllegalStateException("first");
    Failures.runAfter(failure, steps::incrementAndGet);
    assertThat(steps).hasValue(1);
    assertThat(failure.getSuppressed()).isEmpty();
    RuntimeException later = new IllegalStateException("later");
    Failures.runAfter(
        failure,
        () -> {
          throw later;
        });
    Error last = new StackOverflowError();
    Failures.runAfter(
        failure,
        () -> {
          throw last;
        });
    assertThat(failure.getSuppressed()).containsExactly(later, last);
  }

  /**
   * Of what nobody wrote for this, the text is suppressed; where there is no heap, there is none.
   */
  @Test
  void failureOfAPartOfACopy_saysWhatWasWritten_andStaysWhatItIs() {
    RuntimeException ofTheUser = new IllegalArgumentException("broken");
    assertThat(PartialCopy.explained(ofTheUser, "half of it was")).isSameAs(ofTheUser);
    Error error = new AssertionError("broken");
    assertThatThrownBy(() -> PartialCopy.explained(error, "half of it was")).isSameAs(error);
    for (Throwable each : List.of(ofTheUser, error)) {
      assertThat(each).hasMessage("broken");
      assertThat(each.getSuppressed())
          .singleElement()
          .extracting(Throwable::getMessage)
          .isEqualTo("half of it was");
    }
    Error noHeap = new OutOfMemoryError();
    assertThatThrownBy(() -> PartialCopy.explained(noHeap, "half of it was")).isSameAs(noHeap);
    assertThat(noHeap).hasNoSuppressedExceptions();
    assertThat(PartialCopy.explained(new IllegalStateException("closed"), "half of it was"))
        .isExactlyInstanceOf(IllegalStateException.class)
        .hasMessage("closed; half of it was");
  }

  private void run(Throwable thrown) {
    failures.run(() -> {
      steps.incrementAndGet();
      if (thrown instanceof Error error) {
        throw error;
      }
      throw (RuntimeException) thrown;
    });
  }
}

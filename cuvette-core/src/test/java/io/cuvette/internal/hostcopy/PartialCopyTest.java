package io.cuvette.internal.hostcopy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.OutOfPinnedMemoryException;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.util.concurrent.CancellationException;
import org.junit.jupiter.api.Test;

/** A copy that fails says what was written, in its own words if they can be changed. */
class PartialCopyTest {
  private static final String TEXT = "copy of 9 bytes to the host: no byte was written";

  private static RuntimeException explained(Throwable e) {
    return PartialCopy.explained(e, false, 9, 9, 0, 0);
  }

  @Test
  void failureWhoseWordsCanBeChanged_hasTheTextInThem() {
    CudaException refused = new CudaException(CudaStatus.NOT_PERMITTED, "memcpy", "by a test");
    assertThat(explained(refused))
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.NOT_PERMITTED))
        .hasMessageContainingAll("memcpy", TEXT)
        .hasNoSuppressedExceptions();
    assertThat(explained(new CancellationException("stopped")))
        .isInstanceOf(CancellationException.class)
        .hasMessage("stopped; " + TEXT)
        .hasNoSuppressedExceptions();
    IllegalStateException closed = new IllegalStateException("closed");
    assertThat(explained(closed))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("closed; " + TEXT)
        .hasCause(closed);
  }

  @Test
  void otherFailures_haveItBesideThem_andErrorsAreThrown() {
    RuntimeException other = new IllegalArgumentException("other");
    assertThat(explained(other)).isSameAs(other);
    assertThat(other.getSuppressed()).singleElement().satisfies(PartialCopyTest::saysSo);
    Error error = new AssertionError("error");
    assertThatThrownBy(() -> explained(error)).isSameAs(error);
    assertThat(error.getSuppressed()).singleElement().satisfies(PartialCopyTest::saysSo);
    OutOfMemoryError full = new OutOfMemoryError("none");
    assertThatThrownBy(() -> explained(full)).isSameAs(full).hasNoSuppressedExceptions();
  }

  private static void saysSo(Throwable e) {
    assertThat(e).isInstanceOf(IllegalStateException.class).hasMessage(TEXT);
  }

  /** Its type and its parts are more than its words. */
  @Test
  void failureThatSaysMore_isKept() {
    CudaException full = new OutOfPinnedMemoryException(1, "call", "memory is out");
    assertThat(explained(full)).isSameAs(full);
    assertThat(full.getSuppressed()).singleElement().satisfies(PartialCopyTest::saysSo);
  }

  @Test
  void text_namesWhatWasWritten_andWhatMayBe() {
    CancellationException stopped = new CancellationException("stopped");
    assertThat(PartialCopy.explained(stopped, true, 12, 4, 8, 0))
        .hasMessage(
            "stopped; copy of 12 bytes in rows of 4 to the device: bytes 0 to 8 were written");
    assertThat(PartialCopy.explained(stopped, true, 12, 12, 0, 5))
        .hasMessage(
            "stopped; copy of 12 bytes to the device: bytes 0 to 0 were written, of the next 5 some"
                + " may be");
  }
}

package io.cuvette.sim.internal.base;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class FileCallTest {
  private final Thread caller = Thread.currentThread();

  private boolean isCaller() throws IOException {
    if (Thread.currentThread() == caller) {
      throw new ClosedByInterruptException();
    }
    return false;
  }

  @Test
  void callThatAnInterruptEnded_isMadeByAnotherThread() throws IOException {
    assertThat(FileCall.<Boolean>uninterrupted(this::isCaller)).isFalse();
  }

  static Stream<Throwable> failures() {
    return Stream.of(
        new IOException("a full disk"),
        new OutOfMemoryError("the heap"),
        new IllegalStateException("a defect"));
  }

  @ParameterizedTest
  @MethodSource("failures")
  void failureOfTheOtherThread_isThatOfTheCall(Throwable failure) {
    assertThatThrownBy(() ->
            FileCall.uninterrupted(() -> {
              boolean _ = isCaller();
              switch (failure) {
                case IOException e -> throw e;
                case Error e -> throw e;
                default -> throw (RuntimeException) failure;
              }
            }))
        .isSameAs(failure);
  }
}

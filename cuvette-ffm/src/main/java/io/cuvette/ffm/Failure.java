package io.cuvette.ffm;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.FirstFailure;
import java.util.Locale;

/** Makes the exceptions of failed calls. Thread-safe. */
final class Failure {
  /** Contexts are the process's, and lost until it ends. */
  private static final FirstFailure FIRST = new FirstFailure();

  private Failure() {}

  /**
   * A failed call.
   *
   * @param call the call as a format, such as {@code cuMemAlloc(bytes=%d, device=%d)}; addresses
   *     and handles are {@code %#x}
   */
  @SuppressWarnings("AnnotateFormatMethod") // a dependency; each format is tried by a test
  static CudaException of(int status, String call, Object... arguments) {
    String made = String.format(Locale.ROOT, call, arguments);
    String lost = FIRST.explain(CudaStatus.of(status), made);
    return lost.isEmpty()
        ? new CudaException(status, made)
        : new CudaException(CudaStatus.of(status), made, lost);
  }
}

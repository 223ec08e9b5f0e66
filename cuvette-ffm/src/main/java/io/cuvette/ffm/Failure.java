package io.cuvette.ffm;

import io.cuvette.driver.CudaException;
import java.util.Locale;

/** Makes the exceptions of failed calls. Thread-safe. */
final class Failure {
  private Failure() {}

  /**
   * A failed call.
   *
   * @param call the call as a format, such as {@code cuMemAlloc(bytes=%d, device=%d)}; addresses
   *     and handles are {@code %#x}
   */
  @SuppressWarnings("AnnotateFormatMethod") // a dependency; each format is tried by a test
  static CudaException of(int status, String call, Object... arguments) {
    return new CudaException(status, String.format(Locale.ROOT, call, arguments));
  }
}

package io.cuvette.internal.transfer;

import io.cuvette.driver.CudaException;
import java.util.concurrent.CancellationException;

/** Says of a copy that failed which bytes were written. Stateless. */
final class PartialCopy {
  private PartialCopy() {}

  /**
   * The failure with the bytes in its text; of one whose text cannot be changed, as something that
   * is suppressed.
   *
   * @param written how many bytes from the start were written
   * @param touched how many behind these may have been written too, in part
   */
  static RuntimeException explained(
      Throwable e, boolean in, long bytes, long written, long touched) {
    String text = text(in, bytes, written, touched);
    return switch (e) {
      case CudaException cuda when cuda.getClass() == CudaException.class -> cuda.explained(text);
      case CancellationException _ -> new CancellationException("cancelled: " + text);
      case IllegalStateException _ -> new IllegalStateException(e.getMessage() + "; " + text, e);
      default -> suppressing(e, text);
    };
  }

  /** Throws an error; there may be no Java heap for a text. */
  private static RuntimeException suppressing(Throwable e, String text) {
    if (!(e instanceof OutOfMemoryError)) {
      e.addSuppressed(new IllegalStateException(text));
    }
    if (e instanceof Error error) {
      throw error;
    }
    return (RuntimeException) e;
  }

  static String text(boolean in, long bytes, long written, long touched) {
    String what = "copy of %d bytes %s".formatted(bytes, in ? "to the device" : "to the host");
    if (touched > 0) {
      return "%s: bytes 0 to %d were written, of the next %d some may be"
          .formatted(what, written, touched);
    }
    return written == 0
        ? what + ": no byte was written"
        : "%s: bytes 0 to %d were written".formatted(what, written);
  }
}

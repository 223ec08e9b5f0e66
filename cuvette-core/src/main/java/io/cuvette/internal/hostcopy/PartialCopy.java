package io.cuvette.internal.hostcopy;

import io.cuvette.driver.CudaException;
import java.util.concurrent.CancellationException;

/** Says of a copy that failed which bytes were written. Stateless. */
public final class PartialCopy {
  private PartialCopy() {}

  /** The end of a copy whose thread is interrupted, and stays so. */
  public static CancellationException interrupted() {
    return new CancellationException("the thread is interrupted");
  }

  /**
   * The failure with the bytes in its text.
   *
   * @param rowBytes the bytes of a row in the buffer, of which the bytes are one after the other
   * @param written how many bytes from the start were written
   * @param touched how many behind these may have been written too, in part
   */
  public static RuntimeException explained(
      Throwable e, boolean in, long bytes, long rowBytes, long written, long touched) {
    String rows = rowBytes < bytes ? " in rows of %d".formatted(rowBytes) : "";
    return explained(e, text(in, bytes, rows, written, touched));
  }

  /**
   * The failure with a text that says what was written; of one whose text cannot be changed, as
   * something that is suppressed. Throws an error.
   */
  public static RuntimeException explained(Throwable e, String text) {
    return switch (e) {
      case CudaException cuda when cuda.getClass() == CudaException.class -> cuda.explained(text);
      case CancellationException _ -> new CancellationException(e.getMessage() + "; " + text);
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

  private static String text(boolean in, long bytes, String rows, long written, long touched) {
    String to = in ? "to the device" : "to the host";
    String what = "copy of %d bytes%s %s".formatted(bytes, rows, to);
    if (touched > 0) {
      return "%s: bytes 0 to %d were written, of the next %d some may be"
          .formatted(what, written, touched);
    }
    return written == 0
        ? what + ": no byte was written"
        : "%s: bytes 0 to %d were written".formatted(what, written);
  }
}

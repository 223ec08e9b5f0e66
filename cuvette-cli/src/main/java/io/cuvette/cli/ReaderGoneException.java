package io.cuvette.cli;

import org.jspecify.annotations.Nullable;

/** Whoever read standard output has seen enough: the command ends, and that is no failure. */
final class ReaderGoneException extends RuntimeException {
  private static final long serialVersionUID = 1;

  ReaderGoneException(Throwable cause) {
    super("nobody reads standard output any more", cause, false, false);
  }

  /** Whether this is the reason for a failure. */
  static boolean isReasonFor(Throwable failure) {
    for (@Nullable Throwable e = failure; e != null; e = e.getCause()) {
      if (e instanceof ReaderGoneException) {
        return true;
      }
    }
    return false;
  }
}

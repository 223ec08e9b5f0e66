package io.cuvette.cli;

import org.jspecify.annotations.Nullable;

/** A command failed; the message is all that its user needs. Immutable. */
public class CommandFailure extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** A failure that is shown as the message alone. */
  public CommandFailure(String message) {
    this(message, null);
  }

  /** A failure with a cause, which {@code --verbose} shows. */
  public CommandFailure(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}

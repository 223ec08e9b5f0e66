package io.cuvette.cli.replay;

import io.cuvette.cli.CommandFailure;

/** A line of a trace is not what it should be. Immutable. */
final class MalformedTraceException extends CommandFailure {
  private static final long serialVersionUID = 1L;

  MalformedTraceException(String file, long line, String expected, String found) {
    super("%s:%d: expected %s, found %s".formatted(file, line, expected, found));
  }
}

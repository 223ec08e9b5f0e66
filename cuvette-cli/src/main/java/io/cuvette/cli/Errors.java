package io.cuvette.cli;

import java.io.PrintStream;
import picocli.CommandLine;

/** Says in one line what went wrong, and gives the exit code. Stateless. */
final class Errors {
  private static final int DONE = 0;
  private static final int FAILED = 1;
  private static final int BAD_USAGE = 2;

  private Errors() {}

  /** Bad usage: the message and where to read on. */
  static int usage(CommandLine.ParameterException e, PrintStream err, boolean verbose) {
    String command = e.getCommandLine().getCommandSpec().qualifiedName();
    print(usageText(e) + " (see " + command + " --help)", e, err, verbose);
    return BAD_USAGE;
  }

  /** What stands where a command is expected is named as one. */
  private static String usageText(CommandLine.ParameterException e) {
    CommandLine line = e.getCommandLine();
    boolean noCommand =
        line.getParent() == null
            && e instanceof CommandLine.UnmatchedArgumentException unmatched
            && !unmatched.isUnknownOption();
    return noCommand
        ? "unknown command '%s' (expected: %s)"
            .formatted(
                ((CommandLine.UnmatchedArgumentException) e).getUnmatched().getFirst(),
                String.join(", ", line.getSubcommands().keySet()))
        : text(e);
  }

  /** Any other failure; a closed standard output is none. */
  static int failure(Throwable e, PrintStream err, boolean verbose) {
    if (ReaderGoneException.isReasonFor(e)) {
      return DONE;
    }
    print(text(e), e, err, verbose);
    return FAILED;
  }

  private static void print(String text, Throwable e, PrintStream err, boolean verbose) {
    err.println("cuvette: " + text);
    if (verbose || Boolean.getBoolean("cuvette.debug")) {
      e.printStackTrace(err);
    }
  }

  private static String text(Throwable e) {
    String message = e.getMessage();
    String text = message == null || message.isBlank() ? e.getClass().getSimpleName() : message;
    return text.strip().replaceAll("\\s*\\R\\s*", " ");
  }
}

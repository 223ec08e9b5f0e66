package io.cuvette.cli;

import java.io.PrintStream;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
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

  /** Names what would do where something else stands. */
  private static String usageText(CommandLine.ParameterException e) {
    CommandLine line = e.getCommandLine();
    if (e instanceof CommandLine.UnmatchedArgumentException unmatched) {
      String first = unmatched.getUnmatched().getFirst();
      if (unmatched.isUnknownOption()) {
        return expected("unknown option", first, known(line));
      }
      return line.getParent() == null
          ? expected("unknown command", first, commands(line))
          : expected("one argument too many:", first, known(line));
    }
    boolean isOfHelp = text(e).startsWith("Unknown subcommand '");
    return isOfHelp ? expected("unknown command", e.getValue(), commands(line)) : text(e);
  }

  private static String expected(String what, @Nullable String found, String known) {
    return "%s '%s' (expected: %s)".formatted(what, found, known);
  }

  private static String commands(CommandLine line) {
    return String.join(", ", line.getSubcommands().keySet());
  }

  private static String known(CommandLine line) {
    Stream<String> options =
        line.getCommandSpec().options().stream().map(CommandLine.Model.OptionSpec::longestName);
    return Stream.concat(line.getSubcommands().keySet().stream(), options)
        .collect(Collectors.joining(", "));
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
    String line = text.strip().replaceAll("(?<=[:;,(])\\s*\\R\\s*", " ");
    return line.replaceAll("\\s*\\R\\s*", "; ");
  }
}

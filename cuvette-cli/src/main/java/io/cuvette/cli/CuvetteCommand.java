package io.cuvette.cli;

import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The command itself, which only has others below it. Not thread-safe. */
@Command(
    name = "cuvette",
    description = "CUDA memory and device management for the JVM.",
    mixinStandardHelpOptions = true,
    versionProvider = Version.class,
    synopsisSubcommandLabel = "COMMAND",
    footer = {"", "Exit codes: 0 done, 1 failed, 2 bad usage."})
final class CuvetteCommand implements Runnable {
  @Spec
  @SuppressWarnings("NullAway.Init") // set by picocli
  private CommandSpec spec;

  @Override
  public void run() {
    throw new ParameterException(
        spec.commandLine(),
        "no command given (expected: " + String.join(", ", spec.subcommands().keySet()) + ")");
  }
}

package io.cuvette.cli;

import io.cuvette.cli.bench.BenchCommand;
import io.cuvette.cli.info.InfoCommand;
import io.cuvette.cli.replay.ReplayCommand;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;
import java.util.function.Function;
import picocli.CommandLine;

/** The command line. Stateless. */
public final class Main {
  private static final int DONE = 0;

  private Main() {}

  /** Runs a command and ends the process with its exit code. */
  public static void main(String[] arguments) {
    Locale.setDefault(Locale.Category.FORMAT, Locale.ROOT); // 0.17 ms and 1,000 everywhere
    System.exit(run(Terminal.standard(), arguments));
  }

  /** Runs a command; gives 0 done, 1 failed, 2 bad usage. */
  static int run(Terminal terminal, String... arguments) {
    CommandLine line = new CommandLine(new CuvetteCommand());
    add(line, terminal, "info", InfoCommand::new);
    add(line, terminal, "demo", DemoCommand::new);
    add(line, terminal, "replay", ReplayCommand::new);
    add(line, terminal, "bench", BenchCommand::new);
    add(line, terminal, "example", ExampleCommand::new);
    line.addSubcommand("help", new CommandLine.HelpCommand());
    boolean verbose = Arrays.asList(arguments).contains("--verbose");
    StringWriter help = new StringWriter();
    line.setOut(new PrintWriter(help));
    line.setErr(new PrintWriter(terminal.err(), true, StandardCharsets.UTF_8));
    line.setParameterExceptionHandler((e, _) -> Errors.usage(e, terminal.err(), verbose));
    line.setExecutionExceptionHandler((e, _, _) -> Errors.failure(e, terminal.err(), verbose));
    int code = execute(line, help, terminal, verbose, arguments);
    return code == DONE && terminal.out().checkError() ? unwritten(terminal, verbose) : code;
  }

  /** A full disk, or a reader that went away: a PrintStream does not report it by itself. */
  private static int unwritten(Terminal terminal, boolean verbose) {
    CommandFailure failure =
        new CommandFailure("standard output cannot be written: what is there is incomplete");
    return Errors.failure(failure, terminal.err(), verbose);
  }

  private static void add(
      CommandLine line, Terminal terminal, String name, Function<CommonOptions, Object> command) {
    CommonOptions options = new CommonOptions(terminal);
    CommandLine sub = new CommandLine(command.apply(options));
    options.belongTo(sub);
    line.addSubcommand(name, sub);
  }

  private static int execute(
      CommandLine line,
      StringWriter help,
      Terminal terminal,
      boolean verbose,
      String... arguments) {
    try {
      int code = line.execute(arguments);
      terminal.out().print(help);
      return code;
    } catch (ReaderGoneException e) {
      return Errors.failure(e, terminal.err(), verbose);
    } catch (ExceptionInInitializerError e) {
      // A wrong system property is found where the defaults are read.
      Throwable cause = e.getCause();
      return Errors.failure(cause == null ? e : cause, terminal.err(), verbose);
    } catch (OutOfMemoryError e) {
      String text = "the JVM has too little heap, give it more: JDK_JAVA_OPTIONS=-Xmx4g";
      return Errors.failure(new CommandFailure(text, e), terminal.err(), verbose);
    } finally {
      terminal.out().flush();
      terminal.err().flush();
    }
  }
}

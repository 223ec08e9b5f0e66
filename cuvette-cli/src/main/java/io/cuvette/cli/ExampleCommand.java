package io.cuvette.cli;

import io.cuvette.Cuda;
import io.cuvette.examples.Example;
import io.cuvette.examples.WrongResultException;
import java.io.PrintStream;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Runs an example program. Not thread-safe. */
@Command(
    name = "example",
    mixinStandardHelpOptions = true,
    description = "Run a short example program, which checks its own results.")
final class ExampleCommand implements Runnable {
  private final CommonOptions common;

  @Parameters(arity = "0..1", paramLabel = "NAME", description = "What --list shows.")
  private @Nullable String name;

  @Option(names = "--list", description = "List the examples.")
  private boolean list;

  ExampleCommand(CommonOptions common) {
    this.common = common;
  }

  @Override
  public void run() {
    if (list && name != null) {
      throw common.usage("--list and the example '" + name + "' (expected: one of them)", null);
    }
    if (list) {
      list();
    } else {
      run(find(name));
    }
  }

  private void list() {
    PrintStream out = common.terminal().out();
    int width = Example.ALL.stream().mapToInt(example -> example.name().length()).max().orElse(1);
    for (Example example : Example.ALL) {
      if (common.json()) {
        out.println(new Json().with("example", example.name()).with("summary", example.summary()));
      } else {
        out.printf("%-" + width + "s %s%n", example.name(), example.summary());
      }
    }
  }

  private Example find(@Nullable String wanted) {
    String names = Example.ALL.stream().map(Example::name).collect(Collectors.joining(", "));
    String what = wanted == null ? "no example named" : "unknown example '" + wanted + "'";
    return (wanted == null ? java.util.Optional.<Example>empty() : Example.find(wanted))
        .orElseThrow(() -> common.usage(what + " (expected: " + names + ")", null));
  }

  private void run(Example example) {
    Narrator narrator = new Narrator(common, "example", example.name());
    try (Cuda cuda = common.open()) {
      narrator.start(cuda);
      example.program().run(cuda, narrator);
      narrator.end();
    } catch (WrongResultException e) {
      throw new CommandFailure("example " + example.name() + ": " + e.getMessage(), e);
    }
  }
}

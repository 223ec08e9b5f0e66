package io.cuvette.cli;

import io.cuvette.Cuda;
import io.cuvette.examples.WrongResultException;
import picocli.CommandLine.Command;

/** Runs the tour. Not thread-safe. */
@Command(
    name = "demo",
    mixinStandardHelpOptions = true,
    description = "A tour of the memory pools, step by step, with their numbers checked.")
final class DemoCommand implements Runnable {
  private final CommonOptions common;

  DemoCommand(CommonOptions common) {
    this.common = common;
  }

  @Override
  public void run() {
    Narrator narrator = new Narrator(common, "demo", "tour");
    try (Cuda cuda = common.open()) {
      narrator.start(cuda);
      new DemoTour(cuda, narrator).run();
      narrator.end();
    } catch (WrongResultException e) {
      throw new CommandFailure("demo: " + e.getMessage(), e);
    }
  }
}

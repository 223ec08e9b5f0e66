package io.cuvette.cli;

import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.examples.WrongResultException;
import picocli.CommandLine.Command;

/** Runs the tour. Not thread-safe. */
@Command(
    name = "demo",
    mixinStandardHelpOptions = true,
    description = "A tour of the memory pools, step by step, with their numbers checked.")
final class DemoCommand implements Runnable {
  /** The largest buffer, and the context and small ones beside it. */
  private static final long LEAST_FREE_BYTES = 64L << 20;

  private final CommonOptions common;

  DemoCommand(CommonOptions common) {
    this.common = common;
  }

  @Override
  public void run() {
    Narrator narrator = new Narrator(common, "demo", "tour");
    try (Cuda cuda = common.open()) {
      check(cuda.currentDevice());
      narrator.start(cuda);
      new DemoTour(cuda, narrator).run();
      narrator.end();
    } catch (WrongResultException e) {
      throw new CommandFailure("demo: " + e.getMessage(), e);
    }
  }

  private static void check(CudaDevice device) {
    long free = device.memoryInfo().freeBytes();
    if (free < LEAST_FREE_BYTES) {
      throw new CommandFailure(
          "demo: %s has %s free (expected: at least %s)"
              .formatted(device, Sizes.format(free), Sizes.format(LEAST_FREE_BYTES)));
    }
  }
}

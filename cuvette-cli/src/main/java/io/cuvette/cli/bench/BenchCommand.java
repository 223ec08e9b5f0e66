package io.cuvette.cli.bench;

import io.cuvette.Cuda;
import io.cuvette.cli.CommonOptions;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Measures the targets' table on this machine. Not thread-safe. */
@Command(
    name = "bench",
    mixinStandardHelpOptions = true,
    description =
        "Measure allocation, driver calls, launches, graphs and transfers here, beside the"
            + " targets, in seconds.")
public final class BenchCommand implements Runnable {
  private final CommonOptions common;

  @Parameters(
      arity = "1..*",
      paramLabel = "SUITE",
      description = "pools, driver, launch, transfers, or several.")
  private List<String> suites = new ArrayList<>();

  @Option(
      names = "--quick",
      description = "A twentieth of the work: shows that it runs; the figures are rough.")
  private boolean quick;

  /** The command with the options that all have. */
  public BenchCommand(CommonOptions common) {
    this.common = common;
  }

  @Override
  public void run() {
    Map<String, BiConsumer<Cuda, Figures>> chosen = new LinkedHashMap<>();
    suites.forEach(suite -> chosen.put(suite, find(suite)));
    String device = common.device();
    try (Cuda cuda = common.open(device, options -> options)) {
      Figures figures = new Figures(common, device, cuda.isSimulated(), new Best(quick));
      chosen.values().forEach(suite -> suite.accept(cuda, figures));
      figures.end();
    }
  }

  private BiConsumer<Cuda, Figures> find(String suite) {
    return switch (suite) {
      case "pools" -> PoolSuite::run;
      case "driver" -> DriverSuite::run;
      case "launch" -> LaunchSuite::run;
      case "transfers" -> TransferSuite::run;
      default ->
          throw common.usage(
              "unknown suite '" + suite + "' (expected: pools, driver, launch, transfers)", null);
    };
  }
}

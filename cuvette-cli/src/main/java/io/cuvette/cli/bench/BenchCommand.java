package io.cuvette.cli.bench;

import io.cuvette.Cuda;
import io.cuvette.cli.CommonOptions;
import io.cuvette.cli.MeasuredPool;
import io.cuvette.cli.Numbers;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Measures the targets' table on this machine. Not thread-safe. */
@Command(
    name = "bench",
    mixinStandardHelpOptions = true,
    description =
        "Measure allocation, fragmentation, driver calls, launches, graphs, transfers and"
            + " arrays here, beside the targets, in seconds.")
public final class BenchCommand implements Runnable {
  private static final String POOLS = "pools";
  private static final String FRAGMENTATION = "fragmentation";
  private static final String EXPECTED =
      "(expected: pools, fragmentation, driver, launch, transfers, arrays)";

  private final CommonOptions common;

  @Parameters(
      arity = "0..*",
      paramLabel = "SUITE",
      description = {
        "One or several of:",
        "  pools          how fast memory is allocated and freed, by one thread and by several",
        "  fragmentation  how full the device can be kept, with five mixes of sizes",
        "  driver         calls of the driver",
        "  launch         launches of kernels and graphs",
        "  transfers      copies, both ways",
        "  arrays         products of matrices, and operations on each element"
      })
  private List<String> suites = new ArrayList<>();

  @Option(
      names = "--pool",
      split = ",",
      paramLabel = "POOL",
      converter = MeasuredPool.Any.class,
      description =
          "For pools and fragmentation: memory, elastic, async, pinned (not for fragmentation)"
              + " and direct, separated by commas. Default: all; for fragmentation without direct.")
  private @Nullable List<MeasuredPool> pools;

  @Option(
      names = "--seed",
      paramLabel = "N",
      converter = Numbers.Seed.class,
      description = "For fragmentation: which sizes, and what is freed. Default: 1.")
  private @Nullable Long seed;

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
    if (suites.isEmpty()) {
      throw common.usage("no suite named " + EXPECTED, null);
    }
    Map<String, BiConsumer<Cuda, Figures>> chosen = new LinkedHashMap<>();
    suites.forEach(suite -> chosen.put(suite, find(suite)));
    check(chosen.keySet());
    String device = common.device();
    try (Cuda cuda = common.open(device, options -> options)) {
      Figures figures = new Figures(common, device, cuda.isSimulated(), new Best(quick));
      chosen.values().forEach(suite -> suite.accept(cuda, figures));
      figures.end();
    }
  }

  /** An option that nothing here would look at is refused. */
  private void check(Set<String> chosen) {
    boolean filled = chosen.contains(FRAGMENTATION);
    if (pools != null && !filled && !chosen.contains(POOLS)) {
      throw common.usage(
          "--pool with %s (expected: with pools or fragmentation)"
              .formatted(String.join(", ", chosen)),
          null);
    }
    if (pools != null) {
      MeasuredPool.checkNamed(pools, !filled, common);
    }
    if (seed != null && !filled) {
      throw common.usage(
          "--seed with %s (expected: with fragmentation)".formatted(String.join(", ", chosen)),
          null);
    }
    if (pools != null && filled && !pools.stream().allMatch(MeasuredPool::isOfDevice)) {
      throw common.usage(
          "fragmentation of the pool pinned (expected: memory, elastic, async, direct)", null);
    }
  }

  private List<MeasuredPool> pools(List<MeasuredPool> usual) {
    return pools == null ? usual : pools.stream().distinct().toList();
  }

  private BiConsumer<Cuda, Figures> find(String suite) {
    return switch (suite) {
      case POOLS -> this::pools;
      case FRAGMENTATION -> this::fragmentation;
      case "driver" -> DriverSuite::run;
      case "launch" -> LaunchSuite::run;
      case "transfers" -> TransferSuite::run;
      case "arrays" -> ArraySuite::run;
      default -> throw common.usage("unknown suite '%s' %s".formatted(suite, EXPECTED), null);
    };
  }

  private void pools(Cuda cuda, Figures figures) {
    PoolSuite.run(cuda, figures, pools(List.of(MeasuredPool.values())));
  }

  private void fragmentation(Cuda cuda, Figures figures) {
    List<MeasuredPool> usual =
        List.of(MeasuredPool.MEMORY, MeasuredPool.ELASTIC, MeasuredPool.ASYNC);
    FragmentationSuite.run(cuda, figures, pools(usual), seed == null ? 1 : seed);
  }
}

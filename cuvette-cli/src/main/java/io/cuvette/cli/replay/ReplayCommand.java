package io.cuvette.cli.replay;

import io.cuvette.cli.CommonOptions;
import io.cuvette.cli.MeasuredPool;
import io.cuvette.cli.Numbers;
import io.cuvette.cli.Progress;
import io.cuvette.cli.Sizes;
import io.cuvette.cli.Table;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Replays recorded allocation traces. Not thread-safe. */
@Command(
    name = "replay",
    mixinStandardHelpOptions = true,
    description = {
      "Replay recorded allocations, in their order, through pools.",
      "",
      "Per trace and pool: the operations, the most bytes that were live at once and the most that"
          + " the pool held for them, their ratio, the time of an operation (in the first pass of a"
          + " new pool, and in the fastest of the later ones), and"
          + " the calls of the driver that the first pass needed, counted in a pass of its own.",
      ""
    })
public final class ReplayCommand implements Runnable {
  private final CommonOptions common;

  @Parameters(
      arity = "1..*",
      paramLabel = "FILE",
      description = "A log of RMM: CSV with Thread,Time,Action,Pointer,Size,Stream; also gzip.")
  private List<String> files = new ArrayList<>();

  @Option(
      names = "--pool",
      split = ",",
      defaultValue = "memory",
      paramLabel = "POOL",
      converter = MeasuredPool.OfDevice.class,
      description =
          "memory (caching), elastic (caching over virtual memory), async (the driver's, in stream"
              + " order) and direct (none), separated by commas. Default: memory.")
  private List<MeasuredPool> pools = new ArrayList<>();

  @Option(
      names = "--stream-mode",
      defaultValue = "recorded",
      paramLabel = "MODE",
      converter = StreamMode.Converter.class,
      description =
          "recorded: a stream for each recorded one. single: one for all. turning:N: the"
              + " allocations take turns over N. Default: recorded.")
  private StreamMode mode = StreamMode.RECORDED;

  @Option(
      names = "--limit",
      paramLabel = "LIMIT",
      converter = ReplayLimit.Converter.class,
      description =
          "The most that a pool may hold: bytes (2GiB), a multiple of the trace's peak live"
              + " (1.03x), or both (1.03x+8MiB). Not for direct. Default: no limit.")
  private ReplayLimit limit = ReplayLimit.NONE;

  @Option(
      names = "--timeline",
      paramLabel = "POINTS",
      converter = Numbers.Points.class,
      description =
          "With --json: so many points of live and held memory over the first pass, each"
              + " [operation, live bytes, held bytes].")
  private @Nullable Integer timeline;

  @Option(
      names = "--repeat",
      paramLabel = "N",
      converter = Numbers.Times.class,
      description = "Timed passes. Default: what fits into two seconds, 100 at most.")
  private @Nullable Integer repeat;

  /** The command with the options that all have. */
  public ReplayCommand(CommonOptions common) {
    this.common = common;
  }

  @Override
  public void run() {
    int passes = repeat == null ? 0 : repeat;
    Set<MeasuredPool> kinds = new LinkedHashSet<>(pools);
    checkUsage(kinds);
    var settings = new ReplayRun.Settings(passes, limit, timeline == null ? 0 : timeline);
    List<Trace> traces = files.stream().map(TraceReader::read).toList();
    traces.forEach(limit::of); // all limits are right, or none is tried
    String device = common.device();
    Table table = header();
    try (Progress progress = Progress.start(common, "replay", traces.size() * kinds.size())) {
      for (Trace trace : traces) {
        String enough = SimulatedMemory.enough(device, trace);
        ReplayRun run = new ReplayRun(common, enough, mode, settings);
        for (MeasuredPool kind : kinds) {
          show(run.run(trace, kind), table);
          progress.step();
        }
      }
    } finally {
      if (!table.isEmpty()) {
        table.print(common.terminal().out());
      }
    }
  }

  private void checkUsage(Set<MeasuredPool> kinds) {
    MeasuredPool.checkNamed(kinds, false, common);
    if (limit.isThere() && kinds.contains(MeasuredPool.DIRECT)) {
      throw common.usage(
          "--limit with the pool direct, which has none (expected: memory, elastic, async)", null);
    }
    if (timeline != null && !common.json()) {
      throw common.usage("--timeline without --json (expected: both)", null);
    }
  }

  private static Table header() {
    return new Table(
        3,
        "trace",
        "pool",
        "device",
        "operations",
        "peak live",
        "peak held",
        "ratio",
        "first ns",
        "warm ns",
        "driver calls");
  }

  private void show(ReplayResult result, Table table) {
    if (common.json()) {
      common.terminal().out().println(result.json());
      return;
    }
    table.add(
        result.trace(),
        result.pool().text(),
        result.device() + (result.simulated() ? " (simulated)" : ""),
        Integer.toString(result.operations()),
        Sizes.format(result.peakLiveBytes()),
        Sizes.format(result.peakHeldBytes()),
        decimal("%.4f", result.ratio()),
        decimal("%.1f", result.firstNanosPerOperation()),
        decimal("%.1f", result.warmNanosPerOperation()),
        Long.toString(result.driverCalls()));
  }

  private static String decimal(String format, double value) {
    return Double.isNaN(value) ? "-" : String.format(Locale.ROOT, format, value);
  }
}

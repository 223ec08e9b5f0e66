package io.cuvette.cli.bench;

import io.cuvette.cli.CommonOptions;
import io.cuvette.cli.Json;
import io.cuvette.cli.Table;
import io.cuvette.cli.Wrapped;
import java.util.Locale;

/** Takes the figures: JSON lines as they come, or one table at the end. Not thread-safe. */
final class Figures {
  private final CommonOptions common;
  private final String device;
  private final boolean simulated;
  private final Best best;
  private final Table table = new Table(1, "work", "threads", "figure", "unit", "target");

  Figures(CommonOptions common, String device, boolean simulated, Best best) {
    this.common = common;
    this.device = device;
    this.simulated = simulated;
    this.best = best;
  }

  /** How times are taken. */
  Best best() {
    return best;
  }

  /** Nanoseconds of allocating and freeing once, on one thread. */
  void pair(String work, double nanos, String target) {
    add(work, 1, json(work, 1).with("nsPerPair", nanos), "%.1f", nanos, "ns a pair", target);
  }

  /** Nanoseconds of one call. */
  void call(String work, double nanos) {
    add(work, 1, json(work, 1).with("nsPerCall", nanos), "%.1f", nanos, "ns a call", "C + 20 ns");
  }

  /** Nanoseconds of one launch of a kernel, until the call returns. */
  void launch(String work, double nanos, String target) {
    add(work, 1, json(work, 1).with("nsPerLaunch", nanos), "%.1f", nanos, "ns a launch", target);
  }

  /** Nanoseconds of one step with a graph of 100 kernels. */
  void graph(String work, double nanos, String target) {
    add(work, 1, json(work, 1).with("nsPerGraph", nanos), "%.1f", nanos, "ns a graph", target);
  }

  /** Pairs of all threads in a second. */
  void threads(String work, int threads, double pairsPerSecond, String target) {
    Json json =
        json(work, threads)
            .with("nsPerPair", 1e9 / pairsPerSecond)
            .with("pairsPerSecond", pairsPerSecond);
    add(work, threads, json, "%.2f", pairsPerSecond / 1e6, "M pairs/s", target);
  }

  /** 10⁹ bytes in a second. */
  void copy(String work, double gigabytes) {
    copy(work, gigabytes, "99 % of C");
  }

  /** The same with another target. */
  void copy(String work, double gigabytes, String target) {
    Json json = json(work, 1).with("gigabytesPerSecond", gigabytes);
    add(work, 1, json, "%.2f", gigabytes, "GB/s", target);
  }

  /** Prints the table. */
  void end() {
    if (!common.json()) {
      String text = device + (simulated ? ": times of the simulator, not of a GPU" : "");
      Wrapped.print(common.terminal().out(), "Device ", text);
      table.print(common.terminal().out());
    }
  }

  private Json json(String work, int threads) {
    return new Json()
        .with("work", work)
        .with("threads", threads)
        .with("device", device)
        .with("simulated", simulated);
  }

  private void add(
      String work, int threads, Json json, String form, double value, String unit, String target) {
    if (common.json()) {
      common.terminal().out().println(json);
    } else {
      String figure = String.format(Locale.ROOT, form, value);
      table.add(work, Integer.toString(threads), figure, unit, target);
    }
  }
}

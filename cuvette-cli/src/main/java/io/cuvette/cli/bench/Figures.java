package io.cuvette.cli.bench;

import io.cuvette.cli.CommonOptions;
import io.cuvette.cli.Json;
import io.cuvette.cli.MeasuredPool;
import io.cuvette.cli.Table;
import io.cuvette.cli.Wrapped;
import java.math.BigDecimal;
import java.math.MathContext;
import java.util.Locale;

/** Takes the figures: JSON lines as they come, or one table at the end. Not thread-safe. */
final class Figures {
  /** What has no two digits that count with two decimals. */
  private static final double SMALL = 0.1;

  private final CommonOptions common;
  private final String device;
  private final boolean simulated;
  private final Best best;
  private final Table table = new Table(2, "work", "pool", "threads", "figure", "unit", "target");

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

  /** Nanoseconds of allocating and freeing once, by one thread or by one and another. */
  void pair(String work, MeasuredPool pool, int threads, double nanos, String target) {
    Json json = json(work, pool.text(), threads).with("nsPerPair", nanos);
    add(work, pool.text(), threads, json, "%.1f", nanos, "ns a pair", target);
  }

  /** Nanoseconds of one call. */
  void call(String work, double nanos) {
    one(work, "nsPerCall", "%.1f", nanos, "ns a call", "C + 20 ns");
  }

  /** Nanoseconds of one launch of a kernel, until the call returns. */
  void launch(String work, double nanos, String target) {
    one(work, "nsPerLaunch", "%.1f", nanos, "ns a launch", target);
  }

  /** Nanoseconds of one step with a graph of 100 kernels. */
  void graph(String work, double nanos, String target) {
    one(work, "nsPerGraph", "%.1f", nanos, "ns a graph", target);
  }

  /** Pairs of all threads in a second. */
  void threads(String work, MeasuredPool pool, int threads, double pairsPerSecond, String target) {
    Json json =
        json(work, pool.text(), threads)
            .with("nsPerPair", 1e9 / pairsPerSecond)
            .with("pairsPerSecond", pairsPerSecond);
    double millions = pairsPerSecond / 1e6;
    add(work, pool.text(), threads, json, "%.2f", millions, "M pairs/s", target);
  }

  /** 10⁹ bytes in a second. */
  void copy(String work, double gigabytes) {
    copy(work, gigabytes, "99 % of C");
  }

  /** The same with another target. */
  void copy(String work, double gigabytes, String target) {
    one(work, "gigabytesPerSecond", "%.2f", gigabytes, "GB/s", target);
  }

  /** 10¹² operations in a second. */
  void product(String work, double teraflops, String target) {
    one(work, "teraflops", "%.2f", teraflops, "TFLOP/s", target);
  }

  /** How full a device can be kept. */
  void filled(
      String work, MeasuredPool pool, long seed, FragmentationSuite.Filled filled, String target) {
    Json json =
        json(work, pool.text(), 1)
            .with("seed", seed)
            .with("memoryBytes", filled.memoryBytes())
            .with("usableBytes", filled.usableBytes())
            .with("failedBytes", filled.failedBytes())
            .with("allocations", filled.allocations())
            .with("share", filled.share());
    add(work, pool.text(), 1, json, "%.2f", 100 * filled.share(), "% of memory", target);
  }

  /** Prints the table. */
  void end() {
    if (!common.json()) {
      String text = device + (simulated ? ": times of the simulator, not of a GPU" : "");
      Wrapped.print(common.terminal().out(), "Device ", text);
      table.print(common.terminal().out());
    }
  }

  /** A figure of one thread that is about no pool. */
  private void one(
      String work, String metric, String form, double value, String unit, String target) {
    add(work, "", 1, json(work, "", 1).with(metric, value), form, value, unit, target);
  }

  private Json json(String work, String pool, int threads) {
    Json json = new Json().with("work", work);
    if (!pool.isEmpty()) {
      json.with("pool", pool);
    }
    return json.with("threads", threads).with("device", device).with("simulated", simulated);
  }

  private void add(
      String work,
      String pool,
      int threads,
      Json json,
      String form,
      double value,
      String unit,
      String target) {
    if (common.json()) {
      common.terminal().out().println(json);
    } else {
      String figure =
          value > 0 && value < SMALL
              ? new BigDecimal(value).round(new MathContext(2)).toPlainString()
              : String.format(Locale.ROOT, form, value);
      table.add(work, pool, Integer.toString(threads), figure, unit, target);
    }
  }
}

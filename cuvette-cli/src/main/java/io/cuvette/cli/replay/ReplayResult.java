package io.cuvette.cli.replay;

import io.cuvette.cli.Json;
import io.cuvette.cli.MeasuredPool;
import java.util.List;

/**
 * What a replay measured. Immutable.
 *
 * @param trace the file
 * @param pool the pool
 * @param device the specification of the device
 * @param simulated whether the device is simulated
 * @param streamMode on which streams
 * @param streams the number of streams
 * @param operations allocations and frees
 * @param peakLiveBytes the most that was requested and live at once
 * @param peakHeldBytes the most that the pool held from the driver
 * @param nanosPerOperation the mean of the fastest pass; NaN without operations
 * @param firstNanosPerOperation the mean of the first pass, in which the pool grows
 * @param warmNanosPerOperation the mean of the fastest of the others; NaN if there was none
 * @param passes the number of timed passes
 * @param driverCalls the calls of the driver in the first pass
 * @param limitBytes the pool's limit; {@link Long#MAX_VALUE} for none
 * @param timeline operation, live bytes and held bytes of points in the first pass; empty if not
 *     asked for
 */
record ReplayResult(
    String trace,
    MeasuredPool pool,
    String device,
    boolean simulated,
    StreamMode streamMode,
    int streams,
    int operations,
    long peakLiveBytes,
    long peakHeldBytes,
    double nanosPerOperation,
    double firstNanosPerOperation,
    double warmNanosPerOperation,
    int passes,
    long driverCalls,
    long limitBytes,
    List<List<Long>> timeline) {

  /** Held over live; NaN if nothing was ever live. */
  double ratio() {
    return peakLiveBytes == 0 ? Double.NaN : (double) peakHeldBytes / peakLiveBytes;
  }

  Json json() {
    Json json =
        new Json()
            .with("trace", trace)
            .with("pool", pool.text())
            .with("device", device)
            .with("simulated", simulated)
            .with("streamMode", streamMode.text())
            .with("streams", streams)
            .with("operations", operations)
            .with("peakLiveBytes", peakLiveBytes)
            .with("peakHeldBytes", peakHeldBytes)
            .with("ratio", ratio())
            .with("nsPerOperation", nanosPerOperation)
            .with("firstNsPerOperation", firstNanosPerOperation)
            .with("warmNsPerOperation", warmNanosPerOperation)
            .with("passes", passes)
            .with("driverCalls", driverCalls)
            .with("limitBytes", limitBytes == Long.MAX_VALUE ? null : limitBytes);
    return timeline.isEmpty() ? json : json.with("timeline", timeline);
  }
}

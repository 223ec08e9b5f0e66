package io.cuvette.cli.replay;

import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.LeakLevel;
import io.cuvette.cli.CommonOptions;
import io.cuvette.cli.MeasuredPool;
import io.cuvette.cli.OpenPool;
import java.util.List;

/**
 * Replays one trace through one pool: once with the driver's calls counted, for what the pool holds
 * and asks, and then timed on a driver that is left alone: the first pass of a new pool, which
 * grows in it, apart from the later ones. Passes through a pool before that one compile the code.
 * Not thread-safe.
 */
final class ReplayRun {
  /** The code of a pool is compiled after some tens of passes; 10 are half as fast. */
  private static final int MOST_PASSES = 100;

  private static final long ENOUGH_NANOS = 2_000_000_000L;

  private final CommonOptions options;
  private final String device;
  private final StreamMode mode;
  private final Settings settings;

  ReplayRun(CommonOptions options, String device, StreamMode mode, Settings settings) {
    this.options = options;
    this.device = device;
    this.mode = mode;
    this.settings = settings;
  }

  /**
   * What to do with each pool. Immutable.
   *
   * @param repeat the timed passes; 0 for as many as are sensible
   * @param limit the pool's limit
   * @param points those of a timeline; 0 for none
   */
  record Settings(int repeat, ReplayLimit limit, int points) {}

  /** What a first pass holds and asks. */
  private record Counted(long peakHeldBytes, long driverCalls) {}

  /** The first of some passes, and the fastest of the others. */
  private record Timed(long firstNanos, long warmNanos, int passes, boolean simulated) {
    /** The mean of an operation; NaN if there is none, or was no such pass. */
    static double mean(long nanos, Trace trace) {
      boolean isThere = trace.operations() > 0 && nanos != Long.MAX_VALUE;
      return isThere ? (double) nanos / trace.operations() : Double.NaN;
    }
  }

  ReplayResult run(Trace recorded, MeasuredPool kind) {
    Trace trace = mode.applyTo(recorded);
    Counted counted = count(trace, kind);
    boolean _ = time(trace, kind).simulated; // the code is compiled now
    Timed timed = time(trace, kind);
    return new ReplayResult(
        trace.name(),
        kind,
        device,
        timed.simulated,
        mode,
        trace.streamIds().length,
        trace.operations(),
        trace.peakLiveBytes(),
        counted.peakHeldBytes,
        Timed.mean(Math.min(timed.firstNanos, timed.warmNanos), trace),
        Timed.mean(timed.firstNanos, trace),
        Timed.mean(timed.warmNanos, trace),
        timed.passes,
        counted.driverCalls,
        settings.limit.of(trace).bytesOf(Long.MAX_VALUE),
        settings.points == 0 ? List.of() : timeline(trace, kind));
  }

  private Counted count(Trace trace, MeasuredPool kind) {
    CallCounter counter = new CallCounter();
    try (Cuda cuda =
        options.open(device, o -> o.withLeakLevel(LeakLevel.OFF).withDecorator(counter::around))) {
      CudaStream[] streams = StreamMode.open(trace, cuda.currentDevice());
      OpenPool pool = open(kind, cuda, trace);
      Replay replay = new Replay(trace, pool.resource(), streams);
      long before = counter.calls();
      long peakBlockBytes = replay.observedPass((_, _, _) -> {});
      long calls = counter.calls() - before;
      OpenPool.Held held = pool.held();
      return new Counted(held == null ? peakBlockBytes : held.peak().getAsLong(), calls);
    }
  }

  /** In a pass of its own, since to ask a pool takes time and may tidy it. */
  private List<List<Long>> timeline(Trace trace, MeasuredPool kind) {
    try (Cuda cuda = options.open(device, o -> o)) {
      CudaStream[] streams = StreamMode.open(trace, cuda.currentDevice());
      OpenPool pool = open(kind, cuda, trace);
      Timeline timeline = new Timeline(trace, settings.points, pool);
      long _ = new Replay(trace, pool.resource(), streams).observedPass(timeline::add);
      return timeline.points();
    }
  }

  /** A pool that ends with the Cuda. */
  private OpenPool open(MeasuredPool kind, Cuda cuda, Trace trace) {
    OpenPool pool = kind.open(cuda);
    var set = pool.limit();
    if (settings.limit.isThere() && set != null) {
      set.accept(settings.limit.of(trace));
    }
    return pool;
  }

  private Timed time(Trace trace, MeasuredPool kind) {
    try (Cuda cuda = options.open(device, o -> o)) {
      CudaStream[] streams = StreamMode.open(trace, cuda.currentDevice());
      Replay replay = new Replay(trace, open(kind, cuda, trace).resource(), streams);
      long first = Long.MAX_VALUE;
      long warm = Long.MAX_VALUE;
      int passes = 0;
      for (long spent = 0; passes == 0 || isMore(passes, spent); passes++) {
        long nanos = replay.timedPass();
        replay.freeRest();
        cuda.currentDevice().synchronize(); // each pass finds its memory free
        if (passes == 0) {
          first = nanos;
        } else {
          warm = Math.min(warm, nanos);
        }
        spent += nanos;
      }
      return new Timed(first, warm, passes, cuda.isSimulated());
    }
  }

  private boolean isMore(int passes, long spentNanos) {
    return settings.repeat > 0
        ? passes < settings.repeat
        : passes < MOST_PASSES && spentNanos < ENOUGH_NANOS;
  }
}

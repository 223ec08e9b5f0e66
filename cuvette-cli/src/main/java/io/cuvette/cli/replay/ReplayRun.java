package io.cuvette.cli.replay;

import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.LeakLevel;
import io.cuvette.MemoryResource;
import io.cuvette.cli.CommonOptions;

/**
 * Replays one trace through one pool: once with the driver's calls counted, for what the pool holds
 * and asks, and then timed on a driver that is left alone. Not thread-safe.
 */
final class ReplayRun {
  private static final int MOST_PASSES = 10;
  private static final long ENOUGH_NANOS = 2_000_000_000L;

  private final CommonOptions options;
  private final String device;
  private final StreamMode mode;
  private final int repeat;

  ReplayRun(CommonOptions options, String device, StreamMode mode, int repeat) {
    this.options = options;
    this.device = device;
    this.mode = mode;
    this.repeat = repeat;
  }

  /** What a first pass holds and asks. */
  private record Counted(long peakHeldBytes, long driverCalls) {}

  /** The fastest of some passes. */
  private record Timed(long nanos, int passes, boolean simulated) {}

  ReplayResult run(Trace trace, PoolKind kind) {
    Counted counted = count(trace, kind);
    Timed timed = time(trace, kind);
    return new ReplayResult(
        trace.name(),
        kind,
        device,
        timed.simulated,
        mode,
        mode == StreamMode.SINGLE
            ? Math.min(1, trace.streamIds().length)
            : trace.streamIds().length,
        trace.operations(),
        trace.peakLiveBytes(),
        counted.peakHeldBytes,
        trace.operations() == 0 ? Double.NaN : (double) timed.nanos / trace.operations(),
        timed.passes,
        counted.driverCalls);
  }

  private Counted count(Trace trace, PoolKind kind) {
    CallCounter counter = new CallCounter();
    try (Cuda cuda =
        options.open(device, o -> o.withLeakLevel(LeakLevel.OFF).withDecorator(counter::around))) {
      CudaStream[] streams = mode.open(trace, cuda.currentDevice());
      MemoryResource resource = kind.open(cuda);
      Replay replay = new Replay(trace, resource, streams);
      long before = counter.calls();
      long peakBlockBytes = replay.peakBlockBytes();
      long calls = counter.calls() - before;
      long held = PoolKind.peakHeldBytes(resource, cuda.currentDevice(), peakBlockBytes);
      return new Counted(held, calls);
    }
  }

  private Timed time(Trace trace, PoolKind kind) {
    try (Cuda cuda = options.open(device, o -> o)) {
      CudaStream[] streams = mode.open(trace, cuda.currentDevice());
      Replay replay = new Replay(trace, kind.open(cuda), streams);
      long best = Long.MAX_VALUE;
      int passes = 0;
      for (long spent = 0; passes == 0 || isMore(passes, spent); passes++) {
        long nanos = replay.timedPass();
        replay.freeRest();
        cuda.currentDevice().synchronize(); // each pass finds its memory free
        best = Math.min(best, nanos);
        spent += nanos;
      }
      return new Timed(best, passes, cuda.isSimulated());
    }
  }

  private boolean isMore(int passes, long spentNanos) {
    return repeat > 0 ? passes < repeat : passes < MOST_PASSES && spentNanos < ENOUGH_NANOS;
  }
}

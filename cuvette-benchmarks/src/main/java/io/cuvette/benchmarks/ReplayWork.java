package io.cuvette.benchmarks;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.StreamOptions;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Replays traces through {@link MemoryPool} as the anchors' programs do: of a fresh pool the bytes
 * held after the first pass, which is their peak, and the fastest of the passes after it.
 * Single-threaded.
 */
final class ReplayWork {
  /** A pass is short: it takes that many until all of it is compiled. */
  private static final int WARM_UPS = 40;

  private static final int PASSES = 6;

  private final Cuda cuda;
  private final Lines lines;

  ReplayWork(Cuda cuda, Lines lines) {
    this.cuda = cuda;
    this.lines = lines;
  }

  void run(BinaryTrace trace) {
    List<CudaStream> streams = new ArrayList<>();
    for (int i = 0; i < trace.streams(); i++) {
      streams.add(cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING));
    }
    try (MemoryPool pool = new MemoryPool(cuda)) {
      CudaStream[] byNumber = streams.toArray(CudaStream[]::new);
      pass(trace, pool, byNumber);
      long held = pool.stats(cuda.currentDevice()).heldBytes();
      for (int i = 0; i < WARM_UPS; i++) {
        pass(trace, pool, byNumber);
      }
      double best = Double.MAX_VALUE;
      for (int i = 0; i < PASSES; i++) {
        best = Math.min(best, pass(trace, pool, byNumber));
      }
      lines.replay(trace.name(), best, (double) held / trace.peakLiveBytes());
    }
    streams.forEach(CudaStream::close);
  }

  /** Nanoseconds for each operation. */
  private static double pass(BinaryTrace trace, MemoryPool pool, CudaStream[] streams) {
    @Nullable Buffer[] live = new Buffer[trace.slots()];
    long start = System.nanoTime();
    for (int i = 0; i < trace.operations(); i++) {
      int slot = trace.slot(i);
      long bytes = trace.bytes(i);
      if (bytes >= 0) {
        live[slot] = pool.allocate(bytes, streams[trace.stream(i)]);
      } else {
        Buffer block = live[slot];
        if (block != null) {
          block.close();
          live[slot] = null;
        }
      }
    }
    double nanos = (double) (System.nanoTime() - start) / trace.operations();
    PoolWork.closeAll(live);
    return nanos;
  }
}

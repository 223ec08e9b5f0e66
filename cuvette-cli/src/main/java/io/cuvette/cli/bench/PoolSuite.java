package io.cuvette.cli.bench;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.StreamOptions;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/** Allocating and freeing from the pools. Stateless. */
final class PoolSuite {
  private static final int MIB = 1 << 20;
  private static final int SLOTS = 1024;
  private static final int STEPS = 1 << 16;
  private static final long MOST_BYTES = 4L << 20;

  private PoolSuite() {}

  static void run(Cuda cuda, Figures figures) {
    Best best = figures.best();
    try (MemoryPool pool = new MemoryPool(cuda);
        CudaStream stream = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING)) {
      figures.pair("same-size-512", sameSize(best, pool, stream, 512), "<= 45");
      figures.pair("same-size-1MiB", sameSize(best, pool, stream, MIB), "<= 45");
      figures.pair("random-live-1024-4MiB", randomLive(best, pool, stream), "<= 120");
    }
    ThreadSuite.run(cuda, figures);
    try (PinnedMemoryPool pool = new PinnedMemoryPool(cuda)) {
      figures.pair("pinned-1MiB", pinned(best, pool), "");
    }
  }

  private static double sameSize(Best best, MemoryPool pool, CudaStream stream, long bytes) {
    return best.nanos(500_000, turns -> pairs(pool, stream, bytes, turns));
  }

  static void pairs(MemoryPool pool, CudaStream stream, long bytes, int turns) {
    for (int i = 0; i < turns; i++) {
      pool.allocate(bytes, stream).close();
    }
  }

  private static double pinned(Best best, PinnedMemoryPool pool) {
    return best.nanos(
        100_000,
        turns -> {
          for (int i = 0; i < turns; i++) {
            pool.allocate(MIB).close();
          }
        });
  }

  /** Frees a random slot and fills it anew; sizes and slots are those of the anchors. */
  private static double randomLive(Best best, MemoryPool pool, CudaStream stream) {
    SplittableRandom random = new SplittableRandom(1);
    long[] sizes =
        random.longs(STEPS).map(r -> 1 + Long.remainderUnsigned(r, MOST_BYTES)).toArray();
    int[] slots =
        random.longs(STEPS).mapToInt(r -> (int) Long.remainderUnsigned(r, SLOTS)).toArray();
    @Nullable Buffer[] live = new Buffer[SLOTS];
    double nanos =
        best.nanos(
            2 * STEPS,
            turns -> {
              for (int i = 0; i < turns; i++) {
                int step = i & (STEPS - 1);
                close(live, slots[step]);
                live[slots[step]] = pool.allocate(sizes[step], stream);
              }
            });
    for (int slot = 0; slot < SLOTS; slot++) {
      close(live, slot);
    }
    return nanos;
  }

  private static void close(@Nullable Buffer[] live, int slot) {
    Buffer buffer = live[slot];
    if (buffer != null) {
      live[slot] = null;
      buffer.close();
    }
  }
}

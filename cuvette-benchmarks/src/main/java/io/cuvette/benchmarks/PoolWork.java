package io.cuvette.benchmarks;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.StreamOptions;
import org.jspecify.annotations.Nullable;

/** The pools, one thread: the same work as the anchors' pool programs. Single-threaded. */
final class PoolWork {
  private static final int MIB = 1 << 20;

  private final Cuda cuda;
  private final Lines lines;

  PoolWork(Cuda cuda, Lines lines) {
    this.cuda = cuda;
    this.lines = lines;
  }

  void run() {
    try (MemoryPool pool = new MemoryPool(cuda);
        CudaStream stream = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING)) {
      lines.figure("same-size-512", "nsPerPair", sameSize(pool, stream, 512));
      lines.figure("same-size-1MiB", "nsPerPair", sameSize(pool, stream, MIB));
      lines.figure("random-live-1024-4MiB", "nsPerPair", randomLive(pool, stream));
    }
    try (PinnedMemoryPool pool = new PinnedMemoryPool(cuda)) {
      lines.figure("pinned-1MiB", "nsPerPair", pinned(pool));
    }
  }

  private static double sameSize(MemoryPool pool, CudaStream stream, long bytes) {
    return BestOf.nanosPerTurn(
        2_000_000,
        7,
        turns -> {
          for (int i = 0; i < turns; i++) {
            pool.allocate(bytes, stream).close();
          }
        });
  }

  private static double pinned(PinnedMemoryPool pool) {
    return BestOf.nanosPerTurn(
        500_000,
        5,
        turns -> {
          for (int i = 0; i < turns; i++) {
            pool.allocate(MIB).close();
          }
        });
  }

  private static double randomLive(MemoryPool pool, CudaStream stream) {
    RandomWork work = new RandomWork();
    @Nullable Buffer[] live = new Buffer[RandomWork.SLOTS];
    double nanos =
        BestOf.nanosPerTurn(
            8 * RandomWork.COUNT,
            7,
            turns -> {
              for (int i = 0; i < turns; i++) {
                int slot = work.slot(i);
                Buffer old = live[slot];
                if (old != null) {
                  old.close();
                }
                live[slot] = pool.allocate(work.bytes(i), stream);
              }
            });
    closeAll(live);
    return nanos;
  }

  /** Closes what is in the slots and empties them. */
  static void closeAll(@Nullable Buffer[] slots) {
    for (int i = 0; i < slots.length; i++) {
      Buffer buffer = slots[i];
      if (buffer != null) {
        buffer.close();
        slots[i] = null;
      }
    }
  }
}

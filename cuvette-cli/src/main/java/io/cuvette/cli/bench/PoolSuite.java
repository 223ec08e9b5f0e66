package io.cuvette.cli.bench;

import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryResource;
import io.cuvette.StreamOptions;
import io.cuvette.cli.MeasuredPool;
import io.cuvette.cli.OpenPool;
import java.util.List;

/**
 * Allocating and freeing from the pools, one after the other: by one thread, and by several. Each
 * pool is new, and the one before it is closed. Stateless.
 */
final class PoolSuite {
  private static final int MIB = 1 << 20;
  private static final String SAME_SIZE_TARGET = "<= 45";
  private static final String RANDOM_TARGET = "<= 120";

  /** Page-locked memory is not there in such amounts, and takes long to get. */
  private static final int PINNED_SLOTS = 64;

  private PoolSuite() {}

  static void run(Cuda cuda, Figures figures, List<MeasuredPool> kinds) {
    for (MeasuredPool kind : kinds) {
      try (OpenPool pool = kind.open(cuda);
          CudaStream stream = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING)) {
        oneThread(kind, pool.resource(), stream, figures);
      }
      new ThreadSuite(cuda, figures, kind).run();
    }
  }

  /** Whether a pool is held to targets: the others are the driver's. */
  static String target(MeasuredPool kind, String target) {
    return kind == MeasuredPool.MEMORY || kind == MeasuredPool.ELASTIC ? target : "";
  }

  private static void oneThread(
      MeasuredPool kind, MemoryResource pool, CudaStream stream, Figures figures) {
    boolean pinned = kind == MeasuredPool.PINNED;
    String same = pinned ? "pinned-" : "same-size-";
    Best best = figures.best();
    figures.pair(
        same + 512,
        kind,
        1,
        best.nanos(turns -> pairs(pool, stream, 512, turns)),
        target(kind, SAME_SIZE_TARGET));
    figures.pair(
        same + "1MiB",
        kind,
        1,
        best.nanos(turns -> pairs(pool, stream, MIB, turns)),
        target(kind, SAME_SIZE_TARGET));
    int slots = pinned ? PINNED_SLOTS : RandomWork.SLOTS;
    String random = (pinned ? "pinned-" : "") + "random-live-" + slots + "-4MiB";
    try (RandomWork work = new RandomWork(slots, 0)) {
      work.fill(pool, stream);
      double nanos = best.nanos(turns -> work.run(pool, stream, turns));
      figures.pair(random, kind, 1, nanos, target(kind, RANDOM_TARGET));
    }
  }

  static void pairs(MemoryResource pool, CudaStream stream, long bytes, int turns) {
    for (int i = 0; i < turns; i++) {
      pool.allocate(bytes, stream).close();
    }
  }
}

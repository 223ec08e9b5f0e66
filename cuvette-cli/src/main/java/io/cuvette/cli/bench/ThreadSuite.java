package io.cuvette.cli.bench;

import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryResource;
import io.cuvette.StreamOptions;
import io.cuvette.cli.MeasuredPool;
import io.cuvette.cli.OpenPool;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * One pool and several threads, each on a stream of its own or all on one: pairs of 1 MiB, blocks
 * of random sizes, and blocks that another thread frees than the one that allocates. Not
 * thread-safe.
 */
final class ThreadSuite {
  private static final int MIB = 1 << 20;
  private static final int[] THREADS = {1, 2, 4, 8};

  /** Of each thread with random sizes. */
  private static final int SLOTS = 32;

  /** Threads with random sizes begin so far apart from each other. */
  private static final int APART = 7919;

  private static final int FOUR = 4;
  private static final int EIGHT = 8;
  private static final String TWICE = ">= 2 x 1 thread";

  private final Cuda cuda;
  private final Figures figures;
  private final MeasuredPool kind;

  ThreadSuite(Cuda cuda, Figures figures, MeasuredPool kind) {
    this.cuda = cuda;
    this.figures = figures;
    this.kind = kind;
  }

  /** Makes the task of one thread. */
  @FunctionalInterface
  private interface Maker {
    Rate.Task make(MemoryResource pool, CudaStream stream, int thread);
  }

  void run() {
    if (kind == MeasuredPool.PINNED) {
      measure("pinned-threads-", "", 1, ThreadSuite::pairs);
      measure("pinned-threads-", "-mixed", 1, ThreadSuite::mixed);
      handOver("pinned-producer-consumer");
    } else {
      measure("threads-", "-own-stream", EIGHT, ThreadSuite::pairs);
      measure("threads-", "-same-stream", 1, ThreadSuite::pairs);
      measure("threads-", "-same-stream-mixed", 1, ThreadSuite::mixed);
      handOver("producer-consumer");
    }
  }

  /** Measures with 1 to 8 threads on so many streams at most. */
  private void measure(String before, String after, int mostStreams, Maker maker) {
    for (int threads : THREADS) {
      double rate = rate(threads, Math.min(threads, mostStreams), maker);
      String target = target(threads, mostStreams > 1, after.endsWith("mixed"));
      figures.threads(before + threads + after, kind, threads, rate, target);
    }
  }

  private String target(int threads, boolean own, boolean mixed) {
    if (kind == MeasuredPool.PINNED || mixed) {
      boolean counts = threads == FOUR && kind != MeasuredPool.ASYNC && kind != MeasuredPool.DIRECT;
      return counts ? TWICE : "";
    }
    return own && threads == EIGHT ? PoolSuite.target(kind, ">= 80") : "";
  }

  private void handOver(String work) {
    double rate =
        measured(1, (pool, streams) -> new HandOver(pool, streams.getFirst(), MIB).tasks());
    figures.pair(work, kind, 2, 2e9 / rate, PoolSuite.target(kind, "<= 4 x 1MiB"));
  }

  private double rate(int threads, int streams, Maker maker) {
    return measured(
        streams,
        (pool, all) ->
            IntStream.range(0, threads)
                .mapToObj(thread -> maker.make(pool, all.get(thread % streams), thread))
                .toList());
  }

  /** Makes the tasks of all threads. */
  @FunctionalInterface
  private interface Tasks {
    List<Rate.Task> make(MemoryResource pool, List<CudaStream> streams);
  }

  /** Turns of all threads in a second, in a new pool. */
  private double measured(int streams, Tasks tasks) {
    List<CudaStream> open = new ArrayList<>();
    try (OpenPool pool = kind.open(cuda)) {
      while (open.size() < streams) {
        open.add(cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING));
      }
      return Rate.best(figures.best(), tasks.make(pool.resource(), open));
    } finally {
      open.forEach(CudaStream::close);
    }
  }

  private static Rate.Task pairs(MemoryResource pool, CudaStream stream, int thread) {
    return turns -> PoolSuite.pairs(pool, stream, MIB, turns);
  }

  private static Rate.Task mixed(MemoryResource pool, CudaStream stream, int thread) {
    return turns -> {
      try (RandomWork work = new RandomWork(SLOTS, thread * APART)) {
        work.run(pool, stream, turns);
      }
    };
  }
}

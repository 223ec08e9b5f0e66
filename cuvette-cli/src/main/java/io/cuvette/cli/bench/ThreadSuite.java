package io.cuvette.cli.bench;

import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.StreamOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Pairs of 1 MiB on several threads, each on a stream of its own or all on one. Stateless. */
final class ThreadSuite {
  private static final int MIB = 1 << 20;
  private static final int PAIRS = 1_000_000;
  private static final int[] THREADS = {1, 4, 8};

  private ThreadSuite() {}

  static void run(Cuda cuda, Figures figures) {
    for (int threads : THREADS) {
      figures.threads(
          "threads-" + threads + "-own-stream",
          threads,
          best(cuda, figures.best(), threads, true),
          threads == 8 ? ">= 80" : "");
    }
    for (int threads : THREADS) {
      figures.threads(
          "threads-" + threads + "-same-stream",
          threads,
          best(cuda, figures.best(), threads, false),
          "");
    }
  }

  /** Pairs a second; the first repetition warms up. */
  private static double best(Cuda cuda, Best how, int threads, boolean own) {
    List<CudaStream> streams = new ArrayList<>();
    try (MemoryPool pool = new MemoryPool(cuda);
        ExecutorService executor = Executors.newFixedThreadPool(threads)) {
      while (streams.size() < (own ? threads : 1)) {
        streams.add(cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING));
      }
      double best = 0;
      for (int i = 0; i <= (how.repetitions() + 1) / 2; i++) {
        double rate = rate(pool, streams, how.turns(PAIRS), threads, executor);
        best = i == 0 ? 0 : Math.max(best, rate);
      }
      return best;
    } finally {
      streams.forEach(CudaStream::close);
    }
  }

  /** From the moment all threads are ready to the end of the last. */
  private static double rate(
      MemoryPool pool, List<CudaStream> streams, int pairs, int threads, ExecutorService executor) {
    CountDownLatch ready = new CountDownLatch(threads);
    CountDownLatch go = new CountDownLatch(1);
    List<CompletableFuture<Void>> done = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      CudaStream stream = streams.get(i % streams.size());
      done.add(CompletableFuture.runAsync(() -> work(pool, stream, pairs, ready, go), executor));
    }
    await(ready);
    long start = System.nanoTime();
    go.countDown();
    done.forEach(CompletableFuture::join);
    return threads * (double) pairs * 1e9 / (System.nanoTime() - start);
  }

  private static void work(
      MemoryPool pool, CudaStream stream, int pairs, CountDownLatch ready, CountDownLatch go) {
    ready.countDown();
    await(go);
    PoolSuite.pairs(pool, stream, MIB, pairs);
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while measuring", e);
    }
  }
}

package io.cuvette.benchmarks;

import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.StreamOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Pairs of 1 MiB from several threads on one pool, each on a stream of its own or all on one: the
 * same work as the anchors' programs. Single-threaded itself.
 */
final class ThreadWork {
  private static final int MIB = 1 << 20;
  private static final int PAIRS = 1_000_000;
  private static final int REPETITIONS = 5;

  private final Cuda cuda;
  private final Lines lines;

  ThreadWork(Cuda cuda, Lines lines) {
    this.cuda = cuda;
    this.lines = lines;
  }

  void run() throws InterruptedException, ExecutionException {
    for (boolean ownStream : new boolean[] {true, false}) {
      for (int threads : new int[] {1, 4, 8}) {
        String work = "threads-" + threads + (ownStream ? "-own-stream" : "-same-stream");
        lines.figure(work, "pairsPerSecond", best(threads, ownStream), threads);
      }
    }
  }

  private double best(int threads, boolean ownStream)
      throws InterruptedException, ExecutionException {
    double best = 0;
    List<CudaStream> streams = streams(threads, ownStream);
    try (MemoryPool pool = new MemoryPool(cuda);
        ExecutorService executor = Executors.newFixedThreadPool(threads)) {
      pairsPerSecond(pool, streams, executor); // warms up
      for (int i = 0; i < REPETITIONS; i++) {
        best = Math.max(best, pairsPerSecond(pool, streams, executor));
      }
    }
    streams.forEach(CudaStream::close);
    return best;
  }

  private List<CudaStream> streams(int threads, boolean ownStream) {
    List<CudaStream> streams = new ArrayList<>();
    for (int t = 0; t < threads; t++) {
      boolean another = ownStream || t == 0;
      streams.add(
          another
              ? cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING)
              : streams.getFirst());
    }
    return streams;
  }

  /** When one thread began and ended, in nanoseconds. */
  private record Span(long start, long end) {}

  /** All pairs over the time from the first thread's start to the last one's end. */
  private static double pairsPerSecond(
      MemoryPool pool, List<CudaStream> streams, ExecutorService executor)
      throws InterruptedException, ExecutionException {
    CyclicBarrier barrier = new CyclicBarrier(streams.size());
    List<Callable<Span>> tasks = new ArrayList<>();
    for (CudaStream stream : streams) {
      tasks.add(() -> {
        pairs(pool, stream, 1);
        barrier.await();
        long start = System.nanoTime();
        pairs(pool, stream, PAIRS);
        return new Span(start, System.nanoTime());
      });
    }
    long first = Long.MAX_VALUE;
    long last = Long.MIN_VALUE;
    for (Future<Span> future : executor.invokeAll(tasks)) {
      Span span = future.get();
      first = Math.min(first, span.start());
      last = Math.max(last, span.end());
    }
    return (double) streams.size() * PAIRS / (last - first) * 1e9;
  }

  private static void pairs(MemoryPool pool, CudaStream stream, int turns) {
    for (int i = 0; i < turns; i++) {
      pool.allocate(MIB, stream).close();
    }
  }
}

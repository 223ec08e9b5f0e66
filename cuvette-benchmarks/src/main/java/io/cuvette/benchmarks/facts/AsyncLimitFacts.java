package io.cuvette.benchmarks.facts;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryLimit;
import java.util.concurrent.Callable;

/** The limit of the pool with the face of CuPy's MemoryAsyncPool. Not thread-safe. */
final class AsyncLimitFacts {
  private static final long LIMIT = 8 * Ways.MIB;

  private final Cuda cuda;
  private final CudaStream stream;
  private final Recorder recorder;

  AsyncLimitFacts(Cuda cuda, Recorder recorder) {
    this.cuda = cuda;
    this.recorder = recorder;
    this.stream = cuda.device(0).createStream();
  }

  private AsyncMemoryPool foreign() {
    return new AsyncMemoryPool(
        cuda, AsyncFacts.each(cuda, AsyncPoolChoice.ofHandle(AsyncFacts.foreignPool(cuda))));
  }

  void run() {
    try (AsyncMemoryPool pool = foreign()) {
      set(pool, "bytes", () -> MemoryLimit.ofBytes(LIMIT));
      recorder.fact("async.set_limit.bytes.reads", () -> AsyncFacts.limit(pool));
      long total = cuda.device(0).totalBytes();
      set(pool, "fraction", () -> MemoryLimit.ofFraction(0.5));
      recorder.fact(
          "async.set_limit.fraction.is_half_of_the_device",
          () -> pool.limit().bytesOf(total) == total / 2);
      set(pool, "fraction_1", () -> MemoryLimit.ofFraction(1.0));
      recorder.fact(
          "async.set_limit.fraction_1.is_the_device", () -> pool.limit().bytesOf(total) == total);
      set(pool, "fraction_0", () -> MemoryLimit.ofFraction(0));
      recorder.fact("async.set_limit.fraction_0.reads", () -> AsyncFacts.limit(pool));
      set(pool, "zero", () -> MemoryLimit.ofBytes(0));
      recorder.fact("async.set_limit.zero.reads", () -> AsyncFacts.limit(pool));
      set(pool, "none", MemoryLimit::none);
      recorder.fact("async.set_limit.none.reads", () -> AsyncFacts.limit(pool));
      refusals(pool);
      beyond(pool);
    }
  }

  private void set(AsyncMemoryPool pool, String name, Callable<MemoryLimit> limit) {
    recorder.outcome("async.set_limit." + name, () -> pool.setLimit(limit.call()));
  }

  private void refusals(AsyncMemoryPool pool) {
    String prefix = "error.async.set_limit.";
    recorder.outcome(prefix + "negative", () -> pool.setLimit(MemoryLimit.ofBytes(-1)));
    recorder.outcome(prefix + "fraction_above_1", () -> pool.setLimit(MemoryLimit.ofFraction(1.1)));
    recorder.outcome(
        prefix + "fraction_negative", () -> pool.setLimit(MemoryLimit.ofFraction(-0.1)));
  }

  private void beyond(AsyncMemoryPool pool) {
    pool.freeAllBlocks(stream);
    pool.setLimit(MemoryLimit.ofBytes(LIMIT));
    recorder.outcome("async.limit.within", () -> pool.allocate(Ways.MIB, stream).close());
    recorder.outcome(
        "async.limit.beyond_what_the_pool_holds", () -> pool.allocate(1 << 30, stream));
    try (AsyncMemoryPool held = foreign()) {
      held.attributes().setReleaseThreshold(Long.MAX_VALUE);
      held.allocate(24 * Ways.MIB, stream).close();
      stream.synchronize();
      held.setLimit(MemoryLimit.ofBytes(LIMIT));
      recorder.outcome(
          "async.limit.beyond_it_but_held", () -> held.allocate(16 * Ways.MIB, stream).close());
    }
  }
}

package io.cuvette.benchmarks.facts;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryLimit;
import io.cuvette.Scope;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.PoolProperties;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;

/** The pool with the face of CuPy's MemoryAsyncPool. Not thread-safe. */
final class AsyncFacts {
  private static final int PINNED = 1;
  private static final int ON_DEVICE = 1;
  private static final int THREAD_LOCAL = 1;
  private static final int RELEASE_THRESHOLD = 4;
  private static final long SMALL = 100;

  private final Cuda cuda;
  private final CudaStream stream;
  private final Recorder recorder;

  AsyncFacts(Cuda cuda, Recorder recorder) {
    this.cuda = cuda;
    this.recorder = recorder;
    this.stream = cuda.device(0).createStream();
  }

  /** A pool made elsewhere. */
  static long foreignPool(Cuda cuda) {
    return cuda.driver().pools().memPoolCreate(new PoolProperties(PINNED, 0, ON_DEVICE, 0, 0));
  }

  /** The choice for the first device; the others take their default pools. */
  static List<AsyncPoolChoice> each(Cuda cuda, AsyncPoolChoice choice) {
    List<AsyncPoolChoice> all =
        new ArrayList<>(Collections.nCopies(cuda.deviceCount(), AsyncPoolChoice.ofDefault()));
    all.set(0, choice);
    return all;
  }

  private AsyncMemoryPool of(AsyncPoolChoice choice) {
    return new AsyncMemoryPool(cuda, each(cuda, choice));
  }

  void choices() {
    choice("default", () -> new AsyncMemoryPool(cuda, AsyncPoolChoice.ofDefault()));
    choice("current", () -> new AsyncMemoryPool(cuda, AsyncPoolChoice.ofCurrent()));
    choice("left_out", () -> new AsyncMemoryPool(cuda));
    choice("list_default", () -> of(AsyncPoolChoice.ofDefault()));
    choice("list_current", () -> of(AsyncPoolChoice.ofCurrent()));
    choice("handle", () -> of(AsyncPoolChoice.ofHandle(foreignPool(cuda))));
  }

  private void choice(String name, Callable<AsyncMemoryPool> make) {
    recorder.outcome(
        "async." + name + ".all",
        () -> {
          AsyncMemoryPool pool = recorder.made("async." + name + ".made", make);
          if (pool != null) {
            try (pool;
                Scope _ = stream.use()) {
              pool("async." + name, pool);
            }
          }
        });
  }

  private void pool(String prefix, AsyncMemoryPool pool) {
    // CuPy's constructor sets it, on whosever pool it is
    long before = pool.attributes().releaseThreshold();
    pool.attributes().setReleaseThreshold(Long.MAX_VALUE);
    pool.freeAllBlocks();
    recorder.fact(prefix + ".get_limit", () -> limit(pool));
    numbers(prefix + ".birth", pool);
    Buffer large = pool.allocate(Ways.MIB);
    Buffer small = pool.allocate(SMALL);
    recorder.fact(prefix + ".pointer_is_set", () -> large.address() != 0);
    numbers(prefix + ".two", pool);
    large.close();
    numbers(prefix + ".one_freed", pool);
    small.close();
    numbers(prefix + ".both_freed", pool);
    recorder.outcome(prefix + ".free_all_blocks", pool::freeAllBlocks);
    numbers(prefix + ".all_freed", pool);
    recorder.outcome(prefix + ".n_free_blocks", () -> blocks(pool));
    pool.attributes().setReleaseThreshold(before);
  }

  @SuppressWarnings("DoNotCall")
  private static int blocks(AsyncMemoryPool pool) {
    return pool.freeBlocks();
  }

  static Object limit(AsyncMemoryPool pool) {
    MemoryLimit limit = pool.limit();
    return SequenceFacts.threshold(limit.bytesOf(Long.MAX_VALUE));
  }

  private void numbers(String prefix, AsyncMemoryPool pool) {
    stream.synchronize();
    recorder.fact(prefix + ".used_bytes", pool::usedBytes);
    recorder.fact(prefix + ".free_bytes", pool::freeBytes);
    recorder.fact(prefix + ".total_bytes", pool::totalBytes);
  }

  void errors() {
    String prefix = "error.async.";
    recorder.outcome(prefix + "empty_list", () -> new AsyncMemoryPool(cuda, List.of()));
    recorder.outcome(
        prefix + "long_list",
        () ->
            new AsyncMemoryPool(
                cuda, Collections.nCopies(cuda.deviceCount() + 1, AsyncPoolChoice.ofCurrent())));
    recorder.outcome(prefix + "create", () -> of(AsyncPoolChoice.ofNew(0)).close());
    recorder.outcome(prefix + "handle_0", () -> of(AsyncPoolChoice.ofHandle(0)));
    try (AsyncMemoryPool pool = of(AsyncPoolChoice.ofDefault());
        Scope _ = stream.use()) {
      recorder.fact("async.zero.pointer_is_set", () -> pool.allocate(0).address() != 0);
      recorder.outcome(prefix + "malloc_negative", () -> pool.allocate(-1));
      recorder.outcome(prefix + "malloc_huge", () -> pool.allocate(1L << 60));
      recorder.outcome("async.free_all_blocks.stream", () -> pool.freeAllBlocks(stream));
      recorder.outcome(prefix + "malloc_capturing", () -> capturing(pool));
    }
  }

  private void capturing(AsyncMemoryPool pool) {
    CudaDriver driver = cuda.driver();
    try (CudaStream busy = cuda.device(0).createStream()) {
      driver.captures().streamBeginCapture(0, busy.handle(), THREAD_LOCAL);
      try {
        pool.allocate(Ways.MIB, busy).close();
      } finally {
        driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, busy.handle()));
      }
    }
  }

  /** Whose pool it allocates from, and what making it does to others. */
  void sides() {
    CudaDriver driver = cuda.driver();
    long standard = driver.pools().deviceGetDefaultMemPool(0);
    long threshold = driver.pools().memPoolGetAttribute(standard, RELEASE_THRESHOLD);
    try (AsyncMemoryPool pool = of(AsyncPoolChoice.ofHandle(foreignPool(cuda)))) {
      recorder.fact(
          "async.sides.current_pool_unchanged",
          () -> driver.pools().deviceGetMemPool(0) == standard);
      try (AsyncMemoryPool other = of(AsyncPoolChoice.ofHandle(foreignPool(cuda)));
          Buffer _ = pool.allocate(Ways.MIB, stream)) {
        stream.synchronize();
        recorder.fact("async.sides.allocates_from_its_own", () -> pool.usedBytes() >= Ways.MIB);
        recorder.fact("async.sides.leaves_the_other_alone", () -> other.usedBytes() == 0);
      }
    }
    try (AsyncMemoryPool _ = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofDefault())) {
      recorder.fact(
          "async.sides.default_pools_threshold_unchanged",
          () -> driver.pools().memPoolGetAttribute(standard, RELEASE_THRESHOLD) == threshold);
    }
  }
}

package io.cuvette.examples;

import static io.cuvette.array.ElementType.FLOAT64;

import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.Scope;
import io.cuvette.StreamOptions;
import io.cuvette.array.ArrayRandom;
import io.cuvette.array.CudaArray;
import io.cuvette.array.CudaArrays;
import io.cuvette.array.HostArray;
import io.cuvette.array.HostArrays;
import io.cuvette.array.NdArray;

/** Random matrices and their products on two streams at once, timed by events. Stateless. */
public final class ConcurrentStreamsExample {
  private static final long SEED = 42;

  private ConcurrentStreamsExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    long side = cuda.isSimulated() ? 40 : 1000;
    out.say("Two products of %,d x %,d, each on a stream of its own:".formatted(side, side));
    try (CudaStream first = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING);
        CudaStream second = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING);
        CudaEvent start = cuda.currentDevice().createEvent();
        CudaEvent end = cuda.currentDevice().createEvent()) {
      start.record(first);
      CudaArrays cp = CudaArrays.of(cuda);
      try (CudaArray one = cp.on(first).empty(FLOAT64, side, side);
          CudaArray two = cp.on(second).empty(FLOAT64, side, side)) {
        multiply(first, SEED, one);
        multiply(second, SEED + 1, two);
        end.record(first);
        first.synchronize();
        second.synchronize();
        end.synchronize();
        check(cuda, first, one, SEED, side, out);
        check(cuda, second, two, SEED + 1, side, out);
      }
      String name = "first stream" + (cuda.isSimulated() ? " (simulated)" : "");
      out.show(name, "%.2f ms".formatted(CudaEvent.elapsedMillis(start, end)));
    }
    cuda.defaultMemoryPool().freeAllBlocks();
    cuda.defaultPinnedMemoryPool().freeAllBlocks();
  }

  /** Queued; the memory of the matrix is lent again when that is done. */
  private static void multiply(CudaStream stream, long seed, CudaArray product) {
    try (Scope _ = stream.use();
        CudaArray a = ArrayRandom.of(product.module(), seed).random(product.shape())) {
      NdArray _ = a.matmul(a, product);
    }
  }

  /** The same seed gives the same numbers on the host. */
  private static void check(
      Cuda cuda, CudaStream stream, CudaArray found, long seed, long side, Output out) {
    try (HostArray a = ArrayRandom.of(HostArrays.of(cuda), seed).random(side, side);
        Scope _ = stream.use();
        HostArray product = found.toHost()) {
      double expected = 0;
      for (long i = 0; i < side; i++) {
        expected += a.getDouble(1, i) * a.getDouble(i, 2);
      }
      boolean isNear = Math.abs(product.getDouble(1, 2) - expected) < 1e-9 * side;
      out.check("element [1, 2] of seed " + seed + " is near", isNear, true);
    }
  }
}

package io.cuvette.examples;

import io.cuvette.Cuda;
import io.cuvette.MemoryPool;
import io.cuvette.PoolOptions;
import io.cuvette.Scope;
import io.cuvette.array.ArrayRandom;
import io.cuvette.array.CudaArray;
import io.cuvette.array.CudaArrays;
import io.cuvette.array.NdArray;

/** Products of large matrices in the memory of two, given back now and then. Stateless. */
public final class MemoryOptimizationExample {
  private MemoryOptimizationExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    long side = cuda.isSimulated() ? 16 : 5000;
    int products = cuda.isSimulated() ? 20 : 100;
    long bytes = side * side * Double.BYTES;
    String few = cuda.isSimulated() ? ", not 100 of 5,000 x 5,000, as it is simulated" : "";
    out.say("%d products of %,d x %,d random doubles%s:".formatted(products, side, side, few));
    try (MemoryPool pool = new MemoryPool(cuda, PoolOptions.DEFAULTS);
        Scope _ = cuda.useAllocator(pool)) {
      print(pool, out);
      ArrayRandom<CudaArray> random = ArrayRandom.of(CudaArrays.of(cuda), 7);
      for (int i = 0; i < products; i++) {
        try (CudaArray temporary = random.random(side, side);
            CudaArray result = temporary.dot(temporary)) {
          if (i % 25 == 0) {
            try (NdArray sum = result.sum()) {
              out.show("sum after step " + i, sum.expand(0).toArray(double[].class)[0]);
            }
          }
        }
        if (i % 10 == 0) {
          cuda.currentStream().synchronize();
          pool.freeAllBlocks();
          out.check("held after step " + i, pool.totalBytes(), 0L);
        }
      }
      print(pool, out);
      long peak = pool.stats().peakHeldBytes();
      out.check("peak of two matrices and little more", peak < 2 * bytes + (64L << 20), true);
      out.check("used at the end", pool.usedBytes(), 0L);
    }
  }

  private static void print(MemoryPool pool, Output out) {
    out.show("used", "%,d bytes".formatted(pool.usedBytes()));
    out.show("free", "%,d bytes".formatted(pool.freeBytes()));
  }
}

package io.cuvette.examples;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.MemoryPool;
import io.cuvette.PoolOptions;
import io.cuvette.driver.MemoryInfo;

/** Watches what a computation takes, and gives the rest back now and then. Stateless. */
public final class MemoryInfoExample {
  private static final long BYTES = 1000L * 1000 * Double.BYTES;

  private MemoryInfoExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    MemoryInfo device = cuda.currentDevice().memoryInfo();
    out.show("device, total bytes", device.totalBytes());
    out.show("device, free bytes", device.freeBytes());
    try (MemoryPool pool = new MemoryPool(cuda, PoolOptions.DEFAULTS)) {
      print(pool, out);
      for (int i = 0; i < 100; i++) {
        try (Buffer temporary = pool.allocate(BYTES);
            Buffer result = pool.allocate(BYTES)) {
          temporary.fill((byte) i);
          result.copyFrom(temporary);
        }
        if (i % 10 == 0) {
          pool.freeAllBlocks();
          out.check("held after step " + i, pool.totalBytes(), 0L);
        }
      }
      print(pool, out);
      out.check("peak held", pool.stats().peakHeldBytes(), 2 * BYTES);
      out.check("asked the driver for memory", pool.stats().growths(), 20L + 2);
      out.check("given out", pool.stats().allocations(), 200L);
    }
  }

  private static void print(MemoryPool pool, Output out) {
    out.show("used", "%,d bytes".formatted(pool.usedBytes()));
    out.show("free", "%,d bytes".formatted(pool.freeBytes()));
    out.show("all", pool.stats());
  }
}

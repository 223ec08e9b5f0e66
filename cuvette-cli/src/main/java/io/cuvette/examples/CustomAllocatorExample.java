package io.cuvette.examples;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PoolOptions;
import io.cuvette.Scope;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.atomic.AtomicLong;

/** Allocators of your own. Stateless. */
public final class CustomAllocatorExample {
  private CustomAllocatorExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    tracking(cuda, out);
    managed(cuda, out);
    NativeFunctionsExample.run(cuda, out);
    none(cuda, out);
  }

  /** A lambda is an allocator; this one sees every request of its scope. */
  private static void tracking(Cuda cuda, Output out) {
    MemoryResource upstream = cuda.currentAllocator();
    AtomicLong seen = new AtomicLong();
    MemoryResource tracking =
        (bytes, stream) -> {
          out.say("Allocating " + bytes + " bytes");
          seen.addAndGet(bytes);
          return upstream.allocate(bytes, stream);
        };
    try (Scope _ = cuda.useAllocator(tracking);
        Buffer ones = cuda.allocate(1000 * 1000 * Double.BYTES)) {
      out.check("seen", seen.get(), ones.byteSize());
    }
    cuda.allocate(64).close();
    out.check("seen after the scope", seen.get(), 8_000_000L);
  }

  /** A caching pool over managed memory, which the host can touch. */
  private static void managed(Cuda cuda, Output out) {
    PoolOptions options = PoolOptions.DEFAULTS.withUpstream(MemoryResource.managed());
    try (MemoryPool pool = new MemoryPool(cuda, options);
        Scope _ = cuda.useAllocator(pool);
        Buffer buffer = cuda.allocate(4096)) {
      buffer.fillInts(0x01020304);
      MemorySegment view = ((ManagedBuffer) buffer).segment();
      out.check("read by the host", view.get(ValueLayout.JAVA_INT, 4092), 0x01020304);
      out.check("held by the managed pool", pool.totalBytes(), 4096L);
    }
  }

  /** Without a pool, closing gives the memory back to the driver at once. */
  private static void none(Cuda cuda, Output out) {
    MemoryPool pool = cuda.defaultMemoryPool();
    long before = pool.stats().allocations();
    try (Scope _ = cuda.useAllocator(MemoryResource.direct());
        Buffer buffer = cuda.allocate(400)) {
      out.check("block without a pool", buffer.blockBytes(), 400L);
    }
    out.check("new in the default pool", pool.stats().allocations() - before, 0L);
    cuda.defaultMemoryPool().freeAllBlocks();
  }
}

package io.cuvette.examples;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.MemoryPool;
import io.cuvette.PinnedMemoryPool;
import java.lang.foreign.MemorySegment;

/** What the pools hold while 400 bytes go to the device and their memory comes back. Stateless. */
public final class MemoryPoolExample {
  private MemoryPoolExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    MemoryPool pool = cuda.defaultMemoryPool();
    PinnedMemoryPool pinned = cuda.defaultPinnedMemoryPool();
    pool.freeAllBlocks();
    pinned.freeAllBlocks();

    out.say("100 floats on the heap; no pool has anything to do with them.");
    float[] host = new float[100];
    host[99] = 42;
    MemorySegment heap = MemorySegment.ofArray(host);
    out.check("bytes", heap.byteSize(), 400L);
    numbers(out, pool, pinned, 0, 0, 0);

    out.say("Copied to the device: sizes are rounded up to 512 bytes, and the copy went");
    out.say("through page-locked memory, which its pool now keeps.");
    try (Buffer device = cuda.allocate(heap.byteSize())) {
      device.copyFrom(heap);
      out.check("device.byteSize()", device.byteSize(), 400L);
      numbers(out, pool, pinned, 512, 512, 1);
      float[] back = new float[100];
      device.copyTo(MemorySegment.ofArray(back));
      out.check("the last of the floats", back[99], 42f);
    }

    out.say("Closed: the memory stays in the pool, for the next who asks.");
    numbers(out, pool, pinned, 0, 512, 1);

    out.say("Given back to the driver:");
    out.check("pool.freeAllBlocks()", pool.freeAllBlocks(), 512L);
    pinned.freeAllBlocks();
    numbers(out, pool, pinned, 0, 0, 0);
  }

  private static void numbers(
      Output out, MemoryPool pool, PinnedMemoryPool pinned, long used, long total, int blocks) {
    out.check("pool.usedBytes()", pool.usedBytes(), used);
    out.check("pool.totalBytes()", pool.totalBytes(), total);
    out.check("pinned.freeBlocks()", pinned.freeBlocks(), blocks);
  }
}

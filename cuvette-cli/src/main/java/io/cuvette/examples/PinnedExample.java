package io.cuvette.examples;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.StreamOptions;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Page-locked host memory, which copies at full speed and beside other work. Stateless. */
public final class PinnedExample {
  private static final int COUNT = 1000;

  private PinnedExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    PinnedMemoryPool pool = cuda.defaultPinnedMemoryPool();
    pool.freeAllBlocks();
    long bytes = COUNT * (long) Double.BYTES;
    try (CudaStream stream = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING);
        PinnedBuffer source = cuda.allocatePinned(bytes);
        PinnedBuffer target = cuda.allocatePinned(bytes);
        Buffer device = cuda.allocate(bytes, stream)) {
      out.say("1,000 doubles in page-locked memory, to the device and back on a stream.");
      fill(source.segment());
      device.copyFrom(source, stream);
      device.copyTo(target, stream);
      stream.synchronize();
      out.check("they came back", target.segment().mismatch(source.segment()) == -1, true);
      out.check("as a ByteBuffer", target.byteBuffer().getDouble(8), 1.0);
      out.show("block of 8,000 bytes", source.blockBytes());
      boolean tight = source.blockBytes() <= bytes * 1.125 + 512;
      out.check("at most 12.5 % more than asked for", tight, true);
    }
    out.say("Closed blocks are kept for the next transfer.");
    out.check("usedBytes()", pool.usedBytes(), 0L);
    out.check("freeBlocks()", pool.freeBlocks(), 2);
    out.say("A heap array cannot be copied asynchronously, the collector may move it:");
    refused(cuda, out);
    pool.freeAllBlocks();
    cuda.defaultMemoryPool().freeAllBlocks();
    out.check("totalBytes()", pool.totalBytes(), 0L);
  }

  private static void fill(MemorySegment segment) {
    for (int i = 0; i < COUNT; i++) {
      segment.setAtIndex(ValueLayout.JAVA_DOUBLE, i, i);
    }
  }

  private static void refused(Cuda cuda, Output out) {
    try (Buffer device = cuda.allocate(8)) {
      out.say(refusal(device, cuda.currentStream()));
    }
  }

  private static String refusal(Buffer device, CudaStream stream) {
    try {
      device.copyFrom(MemorySegment.ofArray(new byte[8]), stream);
    } catch (IllegalArgumentException e) {
      return String.valueOf(e.getMessage());
    }
    throw new WrongResultException("a heap segment was copied asynchronously");
  }
}

package io.cuvette.examples;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.MemoryLimit;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PoolAttributes;
import io.cuvette.Scope;
import java.lang.foreign.MemorySegment;

/** Stream-ordered memory: allocated and freed by the driver as the work runs. Stateless. */
public final class AsyncPoolExample {
  private static final long MIB = 1L << 20;

  private AsyncPoolExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    int device = cuda.currentDevice().id();
    long current = cuda.driver().pools().deviceGetMemPool(device);
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
        CudaStream stream = cuda.currentDevice().createStream()) {
      order(pool, stream, out);
      limit(pool, stream, out);
      threshold(pool, stream, out);
      allocator(cuda, pool, out);
    }
    out.say("The pool was its own; the device's current pool is the one from before.");
    out.check("same current pool", cuda.driver().pools().deviceGetMemPool(device) == current, true);
    choices(cuda, out);
  }

  private static void order(AsyncMemoryPool pool, CudaStream stream, Output out) {
    out.say("1 MiB, filled and freed in order of a stream; the host waits for nothing.");
    try (DeviceBuffer first = pool.allocate(MIB, stream)) {
      out.check("usedBytes()", pool.usedBytes(), MIB);
      out.show("totalBytes(), what the driver reserved", pool.totalBytes());
      first.fill((byte) 1, stream);
    }
    try (DeviceBuffer second = pool.allocate(MIB, stream)) {
      second.fill((byte) 2, stream);
      stream.synchronize();
      out.check("the next block holds its own bytes", lastByte(second), (byte) 2);
    }
    stream.synchronize();
    out.check("usedBytes() after both", pool.usedBytes(), 0L);
    out.check("freeBytes() is all the rest", pool.freeBytes(), pool.totalBytes());
  }

  private static void limit(AsyncMemoryPool pool, CudaStream stream, Output out) {
    out.say("A limit is hard and counts what is live here, not what the driver reserved:");
    pool.setLimit(MemoryLimit.ofBytes(1024));
    try (Buffer used = pool.allocate(500, stream)) {
      out.check("block of 500 bytes", used.blockBytes(), 512L);
      pool.allocate(12, stream).close();
      OutOfDeviceMemoryException e = refusal(pool, stream, used);
      out.say(String.valueOf(e.getMessage()));
      out.check("limit", e.details().limitBytes(), 1024L);
    }
    pool.setLimit(MemoryLimit.none());
    stream.synchronize();
  }

  private static OutOfDeviceMemoryException refusal(
      AsyncMemoryPool pool, CudaStream stream, Buffer beside) {
    try (Buffer more = pool.allocate(513, stream)) {
      throw new WrongResultException("%s beside %s, over the limit".formatted(more, beside));
    } catch (OutOfDeviceMemoryException e) {
      return e;
    }
  }

  private static void threshold(AsyncMemoryPool pool, CudaStream stream, Output out) {
    out.say("The release threshold says what the driver keeps over a synchronisation.");
    PoolAttributes attributes = pool.attributes();
    out.check("it keeps all", attributes.releaseThreshold(), Long.MAX_VALUE);
    long held = pool.totalBytes();
    out.check("freeAllBlocks() gives it back", pool.freeAllBlocks(stream), held);
    attributes.setReleaseThreshold(0);
    pool.allocate(MIB, stream).close();
    stream.synchronize();
    out.check("with a threshold of 0 nothing is kept", pool.totalBytes(), 0L);
    out.show("the most it ever reserved", attributes.reservedMemHigh());
    attributes.setReleaseThreshold(Long.MAX_VALUE);
    out.check("reuse across streams that wait", attributes.reuseFollowEventDependencies(), true);
  }

  private static void allocator(Cuda cuda, AsyncMemoryPool pool, Output out) {
    out.say("It can be the allocator of everything in a scope.");
    try (Scope _ = cuda.useAllocator(pool);
        Buffer buffer = cuda.allocate(MIB)) {
      out.check("usedBytes()", pool.usedBytes(), MIB);
      buffer.fill((byte) 3);
      out.check("the last byte", lastByte(buffer), (byte) 3);
    }
    cuda.currentStream().synchronize();
  }

  private static void choices(Cuda cuda, Output out) {
    out.say("Pools that exist can be used too: the current one, the default, a handle.");
    int device = cuda.currentDevice().id();
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda)) {
      long handle = pool.handle(cuda.currentDevice());
      out.check("the current one", handle == cuda.driver().pools().deviceGetMemPool(device), true);
    }
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofDefault())) {
      long handle = pool.handle(cuda.currentDevice());
      out.check(
          "the default", handle == cuda.driver().pools().deviceGetDefaultMemPool(device), true);
    }
  }

  private static byte lastByte(Buffer buffer) {
    byte[] last = new byte[1];
    buffer.slice(buffer.byteSize() - 1).copyTo(MemorySegment.ofArray(last));
    return last[0];
  }
}

package io.cuvette.cli;

import static io.cuvette.DeviceAttribute.VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PoolOptions;
import io.cuvette.Scope;
import io.cuvette.StreamOptions;
import io.cuvette.examples.MemoryPoolExample;
import io.cuvette.examples.WrongResultException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The tour: the steps of the memory guide, done and checked. Not thread-safe. */
final class DemoTour {
  private static final long MIB = 1L << 20;
  private static final long GIB = 1L << 30;

  private final Cuda cuda;
  private final Narrator out;
  private final MemoryPool pool;

  DemoTour(Cuda cuda, Narrator out) {
    this.cuda = cuda;
    this.out = out;
    this.pool = cuda.defaultMemoryPool();
  }

  void run() {
    out.title("1. The two pools: 400 bytes to the device, and their memory back");
    MemoryPoolExample.run(cuda, out);
    out.title("2. Freed memory is reused without asking the driver");
    reuse();
    out.title("3. A hard limit on what the pool holds");
    limit();
    out.title("4. Out of memory says why");
    outOfMemory();
    out.title("5. Streams: each has its own blocks");
    streams();
    out.title("6. Memory used on another stream comes back only when that use is done");
    crossStream();
    out.title("7. Another allocator: a pool of managed memory");
    otherAllocator();
    out.title("8. The same work in both caching pools");
    bothPools();
    out.title("9. Events measure time");
    events();
    out.title("10. Nothing is left behind");
    pool.freeAllBlocks();
    cuda.defaultPinnedMemoryPool().freeAllBlocks();
    out.check("bytes held by the pool", pool.totalBytes(), 0L);
    out.check("bytes held by the pinned pool", cuda.defaultPinnedMemoryPool().totalBytes(), 0L);
    out.check("forgotten objects", cuda.leaksFound(), 0L);
  }

  private void reuse() {
    long address;
    try (Buffer first = cuda.allocate(MIB)) {
      address = first.address();
    }
    long growths = pool.stats().growths();
    for (int i = 0; i < 1000; i++) {
      try (Buffer next = cuda.allocate(MIB - i)) {
        require(next.address() == address, "another block than the cached one");
      }
    }
    out.check("requests to the driver for 1,000 blocks", pool.stats().growths() - growths, 0L);
    out.check("bytes held", pool.totalBytes(), MIB);
  }

  private void limit() {
    MemoryLimit before = pool.limit();
    pool.setLimit(MemoryLimit.ofBytes(GIB));
    out.check("limit in bytes", pool.limitBytes(), GIB);
    pool.setLimit(MemoryLimit.ofFraction(0.5));
    long half = cuda.currentDevice().totalBytes() / 2;
    out.check("50 % of the device", pool.limitBytes(), half);
    pool.setLimit(before);
    out.say("CUVETTE_GPU_MEMORY_LIMIT=8GiB (or 50%) sets the first limit.");
  }

  private void outOfMemory() {
    PoolOptions options = PoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(8 * MIB));
    try (MemoryPool small = new MemoryPool(cuda, options);
        Buffer used = small.allocate(6 * MIB)) {
      small.allocate(MIB).close();
      OutOfDeviceMemoryException e = refusal(small, 3 * MIB, used);
      out.say(String.valueOf(e.getMessage()));
      out.check("requested", e.requestedBytes(), 3 * MIB);
      out.check("in use", e.details().usedBytes(), 6 * MIB);
      out.check("limit", e.details().limitBytes(), 8 * MIB);
      out.show("the last thing tried", e.details().step());
    }
  }

  private static OutOfDeviceMemoryException refusal(MemoryPool small, long bytes, Buffer beside) {
    try (Buffer more = small.allocate(bytes)) {
      throw new WrongResultException(more + " beside " + beside + ", over the limit");
    } catch (OutOfDeviceMemoryException e) {
      return e;
    }
  }

  private void streams() {
    try (CudaStream one = newStream();
        CudaStream two = newStream();
        MemoryPool own = new MemoryPool(cuda)) {
      long address;
      try (Buffer first = own.allocate(2048, one)) {
        address = first.address();
      }
      try (Buffer second = own.allocate(2048, two);
          Buffer again = own.allocate(2048, one)) {
        out.check("the other stream got a block of its own", second.address() != address, true);
        out.check("the same stream got its block again", again.address(), address);
        out.check("bytes held", own.totalBytes(), 4096L);
      }
    }
  }

  private void crossStream() {
    try (CudaStream producer = newStream();
        CudaStream consumer = newStream();
        MemoryPool own = new MemoryPool(cuda);
        Buffer result = own.allocate(MIB, consumer)) {
      Buffer data = own.allocate(MIB, producer);
      data.fill((byte) 1, producer);
      consumer.waitFor(producer);
      result.copyFrom(data, consumer);
      data.close();
      out.say("Closed while the copy on the other stream may still run; then overwritten:");
      try (Buffer next = own.allocate(MIB, producer)) {
        next.fill((byte) 2, producer);
        consumer.synchronize();
        producer.synchronize();
        byte[] copied = new byte[(int) MIB];
        result.copyTo(MemorySegment.ofArray(copied));
        out.check("the first byte of the copy", copied[0], (byte) 1);
        out.check("the last byte of the copy", copied[copied.length - 1], (byte) 1);
      }
      out.check("bytes still waiting", own.stats().pendingBytes(), 0L);
    }
  }

  private void otherAllocator() {
    PoolOptions options = PoolOptions.DEFAULTS.withUpstream(MemoryResource.managed());
    try (MemoryPool managed = new MemoryPool(cuda, options);
        Scope _ = cuda.useAllocator(managed);
        Buffer buffer = cuda.allocate(1000)) {
      buffer.fill((byte) 9);
      MemorySegment view = ((ManagedBuffer) buffer).segment();
      out.check("read by the host", view.get(ValueLayout.JAVA_BYTE, 999), (byte) 9);
      out.check("bytes held by the managed pool", managed.totalBytes(), 1024L);
    }
    out.check("the allocator after the scope", cuda.currentAllocator(), pool);
  }

  /** Blocks of rising sizes, one after the other, as of batches of varying lengths. */
  private void bothPools() {
    if (cuda.currentDevice().attribute(VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED) == 0) {
      out.say("The device has no virtual memory management, which the elastic pool needs.");
      return;
    }
    try (MemoryPool caching = new MemoryPool(cuda);
        ElasticMemoryPool elastic = new ElasticMemoryPool(cuda)) {
      for (long bytes = 2 * MIB; bytes <= 8 * MIB; bytes += 2 * MIB) {
        caching.allocate(bytes).close();
        elastic.allocate(bytes).close();
      }
      out.check("most in use at once", elastic.stats().peakUsedBytes(), 8 * MIB);
      out.check("bytes held by the MemoryPool, in chunks", caching.totalBytes(), 20 * MIB);
      out.check("bytes held by the ElasticMemoryPool, in pages", elastic.totalBytes(), 8 * MIB);
    }
  }

  private void events() {
    try (CudaStream stream = newStream();
        CudaEvent start = cuda.currentDevice().createEvent();
        CudaEvent end = cuda.currentDevice().createEvent();
        Buffer buffer = cuda.allocate(64 * MIB, stream)) {
      start.record(stream);
      buffer.fill((byte) 3, stream);
      end.record(stream);
      end.synchronize();
      double millis = CudaEvent.elapsedMillis(start, end);
      String simulated = cuda.isSimulated() ? " (simulated)" : "";
      out.show("filling 64 MiB took" + simulated, "%.3f ms".formatted(millis));
      require(millis > 0, "no time passed between two events");
    }
  }

  private CudaStream newStream() {
    return cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING);
  }

  private static void require(boolean right, String otherwise) {
    if (!right) {
      throw new WrongResultException(otherwise);
    }
  }
}

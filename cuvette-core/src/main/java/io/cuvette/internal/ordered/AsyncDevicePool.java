package io.cuvette.internal.ordered;

import io.cuvette.AsyncPoolChoice;
import io.cuvette.AsyncPoolOptions;
import io.cuvette.MemoryLimit;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PoolProperties;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Turns;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.block.Recovery;
import io.cuvette.internal.lifetime.LeakTracker;
import io.cuvette.internal.lifetime.Reclaim;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.OpenStream;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/** An {@code AsyncMemoryPool} on one device. Thread-safe. */
public final class AsyncDevicePool {
  public final DriverPool pool;
  private final Device device;

  /**
   * What the limit counts: bytes are taken from it before the driver is asked, so that threads
   * which ask at the same time never have more than the limit together.
   */
  private final AtomicLong countedBytes = new AtomicLong();

  /** How often bytes were counted so far. */
  private final AtomicLong reservations = new AtomicLong();

  private final StreamOrderedMemory memory;
  private final StreamOrderedAllocator allocator;
  private final Turns turns = new Turns();
  private volatile Limit limit;

  /** A limit and the bytes it means on the device, which change together. */
  private record Limit(MemoryLimit given, long bytes) {}

  public AsyncDevicePool(
      DriverPools pools,
      Device device,
      AsyncPoolChoice choice,
      AsyncPoolOptions options,
      MemoryLimit limit,
      Faces faces) {
    this.device = device;
    this.limit = new Limit(limit, limit.bytesOf(device.totalBytes()));
    // Last, for nobody would destroy it.
    this.pool = open(pools, device, choice, options.thresholdRaised());
    this.memory = pool.memory();
    try {
      this.memory.whenFreed(bytes -> countedBytes.addAndGet(-bytes));
      this.allocator = new StreamOrderedAllocator(pool, faces);
    } catch (OutOfMemoryError e) {
      Failures.closeAfter(e, pool::close);
      throw e;
    }
  }

  private static DriverPool open(
      DriverPools pools, Device device, AsyncPoolChoice choice, boolean keeping) {
    device.session().checkOpen();
    try {
      return switch (choice) {
        case AsyncPoolChoice.Borrowed borrowed -> borrow(pools, device, borrowed, keeping);
        case AsyncPoolChoice.Handle given -> foreign(pools, device, given.handle(), keeping);
        case AsyncPoolChoice.New made ->
            DriverPool.createKeeping(
                pools,
                new PoolProperties(
                    MemAllocationType.PINNED,
                    MemHandleType.NONE,
                    MemLocationType.DEVICE,
                    device.id(),
                    made.maxBytes()));
      };
    } catch (CudaException e) {
      throw StreamOrderedSupport.explained(e, device);
    }
  }

  /** The pool a device was born with is there for ever, whichever is current later. */
  private static DriverPool borrow(
      DriverPools pools, Device device, AsyncPoolChoice.Borrowed choice, boolean keeping) {
    CudaDriver driver = device.session().driver();
    int id = device.id();
    LongSupplier now = () -> driver.pools().deviceGetMemPool(id);
    long born = device.ask(_ -> driver.pools().deviceGetDefaultMemPool(id));
    long handle =
        choice == AsyncPoolChoice.Borrowed.DEFAULT ? born : device.ask(_ -> now.getAsLong());
    LongSupplier current = handle == born ? () -> born : now;
    return DriverPool.borrow(pools, handle, current, keeping);
  }

  /** The driver does not tell whose a pool is, only who may access it. */
  private static DriverPool foreign(
      DriverPools pools, Device device, long handle, boolean keeping) {
    int access;
    try {
      access =
          device.ask(driver ->
              driver.pools().memPoolGetAccess(handle, MemLocationType.DEVICE, device.id()));
    } catch (CudaException e) {
      if (e.status() != CudaStatus.INVALID_VALUE && e.status() != CudaStatus.INVALID_HANDLE) {
        throw e;
      }
      throw new IllegalArgumentException(
          "pool handle: 0x%x is no memory pool (expected: a CUmemoryPool of %s)"
              .formatted(handle, device),
          e);
    }
    if (access == 0) {
      throw new IllegalArgumentException(
          "pool handle: 0x%x is no pool that %s can access".formatted(handle, device));
    }
    return DriverPool.borrow(pools, handle, null, keeping);
  }

  public Face allocate(long bytes, long rounded, OpenStream stream) {
    if (countedBytes.get() > limit.bytes) {
      memory.giveBackIdle(_ -> true); // the limit was lowered: nothing of it is for the next
    }
    Face idle = allocator.reuse(bytes, rounded, stream);
    if (idle != null) {
      return idle; // counted already
    }
    if (!reserve(rounded)
        && !turns.take(() -> pools().whileShort(() -> reserveAfterAll(rounded)))) {
      throw allocator.outOfMemory(bytes, rounded, stream, limit.bytes);
    }
    try {
      return allocator.allocateNew(bytes, rounded, stream);
    } catch (RuntimeException | Error e) {
      countedBytes.addAndGet(-rounded);
      throw e;
    }
  }

  private boolean reserve(long bytes) {
    long before;
    do {
      before = countedBytes.get();
      if (bytes > limit.bytes - before) {
        return false;
      }
    } while (!countedBytes.compareAndSet(before, before + bytes));
    reservations.incrementAndGet();
    return true;
  }

  private boolean reserveAfterAll(long bytes) {
    LeakTracker leaks = device.session().leaks();
    if (bytes > limit.bytes) {
      return false;
    }
    return reserveAfterWaiting(bytes)
        || Reclaim.search(
                leaks, memory::hasForgotten, () -> reserveAfterWaiting(bytes) ? Boolean.TRUE : null)
            != null;
  }

  /** Again if other threads took what there was, and gave up other memory for it. */
  private boolean reserveAfterWaiting(long bytes) {
    long start = System.nanoTime();
    boolean reserved;
    long before;
    do {
      before = reservations.get();
      reserved = reserveWithoutIdle(bytes);
      if (!reserved) {
        device.session().leaks().drain();
        memory.await();
        reserved = reserveWithoutIdle(bytes);
      }
    } while (!reserved
        && reservations.get() != before
        && System.nanoTime() - start < Recovery.PATIENCE_NANOS);
    return reserved;
  }

  /** What is idle counts, also what other threads are about to give back. */
  private boolean reserveWithoutIdle(long bytes) {
    memory.giveBackIdle(_ -> true);
    memory.awaitGivenBack();
    return reserve(bytes);
  }

  private DriverPools pools() {
    return pool.pools();
  }

  public MemoryLimit limit() {
    return limit.given;
  }

  public void setLimit(MemoryLimit next) {
    limit = new Limit(next, next.bytesOf(device.totalBytes()));
  }

  public long liveBytes() {
    memory.settle();
    return memory.liveBytes();
  }

  public long freeAllBlocks(OpenStream stream, OpenStream nullStream) {
    stream.checkOf(device.session());
    stream.checkNotCapturing("freeAllBlocks");
    device.session().leaks().drain();
    long before = reservedBytes();
    stream.awaitWork();
    long live = memory.liveBytes();
    memory.settle();
    if (memory.liveBytes() < live) {
      nullStream.awaitWork(); // these were freed in its order
    }
    pool.trimTo(0);
    return before < 0 ? before : Math.max(0, before - reservedBytes());
  }

  /**
   * What the pool holds; −1 if the driver is too old to tell, which is no reason not to free it.
   */
  private long reservedBytes() {
    try {
      return new AttributesOfPool(pool).reserved();
    } catch (CudaException e) {
      if (e.status() != CudaStatus.CALL_REQUIRES_NEWER_DRIVER) {
        throw e;
      }
      return -1;
    }
  }
}

package io.cuvette.internal.async;

import io.cuvette.AsyncPoolChoice;
import io.cuvette.AsyncPoolOptions;
import io.cuvette.MemoryLimit;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.RecoveryStep;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PoolProperties;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.base.Turns;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.driverpool.AttributesOfPool;
import io.cuvette.internal.driverpool.BorrowedPool;
import io.cuvette.internal.driverpool.DriverPool;
import io.cuvette.internal.driverpool.DriverPools;
import io.cuvette.internal.driverpool.MadePool;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.ordered.OrderedMemory;
import io.cuvette.internal.pool.Budget;
import io.cuvette.internal.pool.Shortage;
import io.cuvette.internal.session.Device;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** An {@code AsyncMemoryPool} on one device. Thread-safe. */
public final class OrderedDevicePool {
  public final DriverPool pool;
  private final Device device;

  /**
   * What the limit counts: bytes are taken from it before the driver allocates, so that threads
   * which allocate at the same time never have more than the limit together.
   */
  private final Budget held;

  private final OrderedMemory memory;
  private final OrderedAllocator allocator;
  private final Turns turns = new Turns();
  private volatile MemoryLimit limit;

  public OrderedDevicePool(
      DriverPools pools,
      Device device,
      AsyncPoolChoice choice,
      AsyncPoolOptions options,
      MemoryLimit limit,
      Faces faces) {
    this.device = device;
    this.limit = limit;
    this.held = new Budget(limit.bytesOf(device.totalBytes()));
    // Last, for nobody would destroy it.
    this.pool = open(pools, device, choice, options.thresholdRaised());
    this.memory = pool.memory();
    try {
      this.memory.whenFreed(held::unreserve);
      this.allocator = new OrderedAllocator(pool, faces);
    } catch (OutOfMemoryError e) {
      Failures.runAfter(e, pool::close);
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
            MadePool.createKeeping(
                pools,
                new PoolProperties(
                    MemAllocationType.PINNED,
                    MemHandleType.NONE,
                    MemLocationType.DEVICE,
                    device.id(),
                    made.maxBytes()));
      };
    } catch (CudaException e) {
      throw OrderedFailures.explained(e, device);
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
    return BorrowedPool.borrow(pools, handle, current, keeping);
  }

  /** The driver does not report which device owns a pool, only which may access it. */
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
    return BorrowedPool.borrow(pools, handle, null, keeping);
  }

  public Face allocate(long bytes, long rounded, OpenStream stream) {
    if (held.room() < 0) {
      memory.giveBackIdle(_ -> true); // the limit was lowered: nothing of it is for the next
    }
    Face idle = allocator.reuse(bytes, rounded, stream);
    if (idle != null) {
      return idle; // counted already
    }
    if (!held.reserve(rounded)) {
      boolean _ = new AtLimit(bytes, rounded, stream).run();
    }
    try {
      return allocator.allocateNew(bytes, rounded, stream);
    } catch (RuntimeException | Error e) {
      held.unreserve(rounded);
      throw e;
    }
  }

  /** What is done about bytes for which the limit has no room. */
  private final class AtLimit extends Shortage<Boolean> {
    private final long bytes;
    private final long rounded;
    private final OpenStream stream;

    AtLimit(long bytes, long rounded, OpenStream stream) {
      super(device.session().leaks(), new Refusals());
      this.bytes = bytes;
      this.rounded = rounded;
      this.stream = stream;
    }

    @Override
    public Boolean inTurn(Supplier<Boolean> steps) {
      return pool.pools().whileShort(() -> turns.take(steps));
    }

    @Override
    public boolean isBeyondLimit() {
      return rounded > held.limit();
    }

    @Override
    public @Nullable Boolean search() {
      return held.reserve(rounded) ? Boolean.TRUE : null;
    }

    /** What is idle counts, also what other threads are about to free. */
    @Override
    public long releaseCached() {
      memory.giveBackIdle(_ -> true);
      memory.awaitGivenBack();
      return 0;
    }

    @Override
    public @Nullable Boolean awaitOnce() {
      device.session().leaks().drain();
      memory.await();
      return searchAndRelease();
    }

    @Override
    public boolean mayHave() {
      return true; // other threads give up what they hold
    }

    @Override
    public long takes() {
      return held.reservations();
    }

    @Override
    public boolean hasForgotten() {
      return memory.hasForgotten();
    }

    @Override
    public OutOfDeviceMemoryException outOfMemory(RecoveryStep step) {
      return allocator.outOfMemory(bytes, rounded, stream, held.limit());
    }
  }

  public MemoryLimit limit() {
    return limit;
  }

  public void setLimit(MemoryLimit next) {
    held.setLimit(next.bytesOf(device.totalBytes()));
    limit = next;
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
   * What the pool holds; −1 if the driver is too old to report it, which is no reason not to free
   * it.
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

package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.PoolProperties;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/** A memory pool of the driver, made here, imported, or somebody else's. Thread-safe. */
final class DriverPool {
  /** CUmemAllocationType. */
  static final int PINNED = 1;

  static final int MANAGED = 2;
  static final int LOCATION_NONE = 0;
  static final int LOCATION_DEVICE = 1;

  /** CUmemAllocationHandleType. */
  static final int NOT_EXPORTED = 0;

  static final int FILE_DESCRIPTOR = 1;

  private final Cuda cuda;
  private final long handle;
  private final boolean owned;
  private final AtomicBoolean closed = new AtomicBoolean();
  private final AtomicBoolean destroyed = new AtomicBoolean();

  private DriverPool(Cuda cuda, long handle, boolean owned) {
    this.cuda = cuda;
    this.handle = handle;
    this.owned = owned;
  }

  private static DriverPool create(Cuda cuda, PoolProperties properties) {
    cuda.checkOpen();
    return new DriverPool(cuda, cuda.driver().memPoolCreate(properties), true);
  }

  /**
   * A new pool that gives nothing back by itself: the driver's default would empty it at each
   * synchronisation.
   */
  static DriverPool createKeeping(Cuda cuda, PoolProperties properties) {
    DriverPool made = create(cuda, properties);
    try {
      new PoolAttributes(made).setReleaseThreshold(Long.MAX_VALUE);
      return made;
    } catch (RuntimeException e) {
      Failures.closeAfter(e, made::close);
      throw e;
    }
  }

  static DriverPool borrow(Cuda cuda, long handle) {
    return new DriverPool(cuda, handle, false);
  }

  /** A pool of another process; the descriptor stays the caller's. */
  static DriverPool imported(Cuda cuda, int descriptor) {
    cuda.checkOpen();
    return new DriverPool(cuda, cuda.driver().memPoolImportFromShareableHandle(descriptor), true);
  }

  /** The location as the driver's pool calls take it. */
  static PoolProperties at(MemoryLocation location, int allocationType, long maxBytes) {
    return at(location, allocationType, NOT_EXPORTED, maxBytes);
  }

  /** The location as the driver's pool calls take it, of a pool that may be exported. */
  static PoolProperties at(
      MemoryLocation location, int allocationType, int handleTypes, long maxBytes) {
    return new PoolProperties(
        allocationType, handleTypes, location.type(), location.id(), maxBytes);
  }

  Cuda cuda() {
    return cuda;
  }

  long handle() {
    return handle;
  }

  boolean isOwned() {
    return owned && !closed.get();
  }

  boolean isClosed() {
    return closed.get();
  }

  /** The driver, if the pool can be asked. */
  CudaDriver driver() {
    cuda.checkOpen();
    checkOpen();
    return cuda.driver();
  }

  void checkOpen() {
    if (closed.get()) {
      throw new IllegalStateException(this + " is closed");
    }
  }

  /** Destroys an owned pool; memory in use stays valid. A borrowed one is let go. */
  void close() {
    shut();
    destroy();
  }

  /** Lets nobody allocate from the pool any more. */
  void shut() {
    closed.set(true);
  }

  /** What remains after {@link #shut}; once. After a failure the pool is open again. */
  void destroy() {
    if (!owned || !destroyed.compareAndSet(false, true)) {
      return;
    }
    try {
      cuda.driver().memPoolDestroy(handle);
    } catch (CudaException e) {
      destroyed.set(false);
      closed.set(false);
      throw e;
    }
  }

  /** Whether there is nothing left to destroy. */
  boolean isDestroyed() {
    return !owned || destroyed.get();
  }

  /**
   * Takes the access of all devices but one back, before the pool is destroyed: the driver gives a
   * recycled handle the access that its predecessor had.
   *
   * @param owner the number of the device the memory is of, which keeps its access; −1 for none
   */
  void revokeAccess(int owner) {
    int[] others =
        cuda.devices().stream()
            .mapToInt(CudaDevice::id)
            .filter(id -> id != owner)
            .filter(id -> cuda.driver().memPoolGetAccess(handle, LOCATION_DEVICE, id) != 0)
            .toArray();
    if (others.length > 0) {
      cuda.driver().memPoolSetAccess(handle, LOCATION_DEVICE, others, 0);
    }
  }

  void setAccess(List<CudaDevice> devices, int access) {
    int[] ids = devices.stream().mapToInt(CudaDevice::id).toArray();
    driver().memPoolSetAccess(handle, LOCATION_DEVICE, ids, access);
  }

  @Override
  public String toString() {
    return "pool 0x" + Long.toHexString(handle);
  }
}

package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.PoolProperties;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/** A memory pool of the driver, made here or somebody else's. Thread-safe. */
final class DriverPool {
  /** CUmemAllocationType. */
  static final int PINNED = 1;

  static final int MANAGED = 2;
  static final int LOCATION_NONE = 0;
  static final int LOCATION_DEVICE = 1;

  private final Cuda cuda;
  private final long handle;
  private final boolean owned;
  private final AtomicBoolean closed = new AtomicBoolean();

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

  /** The location as the driver's pool calls take it. */
  static PoolProperties at(MemoryLocation location, int allocationType, long maxBytes) {
    return new PoolProperties(allocationType, 0, location.type(), location.id(), maxBytes);
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
    if (closed.get()) {
      throw new IllegalStateException("pool 0x%x is closed".formatted(handle));
    }
    return cuda.driver();
  }

  /** Destroys an owned pool; memory in use stays valid. A borrowed one is let go. */
  void close() {
    if (!closed.compareAndSet(false, true) || !owned) {
      return;
    }
    try {
      cuda.driver().memPoolDestroy(handle);
    } catch (CudaException e) {
      closed.set(false);
      throw e;
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

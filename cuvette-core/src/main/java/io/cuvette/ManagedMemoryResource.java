package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Stream-ordered managed memory from one pool of the driver; needs a driver of CUDA 13.
 * Thread-safe.
 */
public final class ManagedMemoryResource extends DriverPoolResource {
  private static final int FIRST_VERSION = 13000;

  private final @Nullable MemoryLocation preferred;

  /**
   * Memory from the pool that is current for managed memory now; it is not owned (cuMemGetMemPool).
   */
  public ManagedMemoryResource(Cuda cuda) {
    this(current(cuda), null);
  }

  /**
   * Memory from a new pool (cuMemPoolCreate).
   *
   * @param preferredLocation where the memory is kept preferably; null for no preference
   */
  public ManagedMemoryResource(Cuda cuda, @Nullable MemoryLocation preferredLocation) {
    this(create(cuda, preferredLocation), preferredLocation);
  }

  private ManagedMemoryResource(DriverPool pool, @Nullable MemoryLocation preferred) {
    super(pool, ManagedBuffer::new);
    this.preferred = preferred;
  }

  private static DriverPool current(Cuda cuda) {
    checkVersion(cuda);
    return DriverPool.borrow(
        cuda, cuda.driver().memGetMemPool(DriverPool.LOCATION_NONE, 0, DriverPool.MANAGED));
  }

  private static DriverPool create(Cuda cuda, @Nullable MemoryLocation preferred) {
    checkVersion(cuda);
    return DriverPool.createKeeping(
        cuda,
        preferred == null
            ? new PoolProperties(DriverPool.MANAGED, 0, DriverPool.LOCATION_NONE, 0, 0)
            : DriverPool.at(preferred, DriverPool.MANAGED, 0));
  }

  private static void checkVersion(Cuda cuda) {
    int version = cuda.driverVersion();
    if (version < FIRST_VERSION) {
      throw new CudaException(
          CudaStatus.CALL_REQUIRES_NEWER_DRIVER,
          "ManagedMemoryResource",
          "the driver supports CUDA %d (expected: >= %d)".formatted(version, FIRST_VERSION));
    }
  }

  @Override
  public ManagedBuffer allocate(long bytes, CudaStream stream) {
    return (ManagedBuffer) take(bytes, stream);
  }

  @Override
  public ManagedBuffer allocate(long bytes) {
    return allocate(bytes, pool().cuda().currentStream());
  }

  /** Where the memory is kept preferably. */
  public Optional<MemoryLocation> preferredLocation() {
    return Optional.ofNullable(preferred);
  }

  @Override
  public boolean isDeviceAccessible() {
    return true;
  }

  @Override
  public boolean isHostAccessible() {
    return true;
  }

  /** The preferred device; −1 if none is preferred. */
  @Override
  public int deviceId() {
    return preferred instanceof MemoryLocation.Device device ? device.id() : -1;
  }

  @Override
  public String toString() {
    return "ManagedMemoryResource[%s, preferredLocation=%s]".formatted(pool(), preferred);
  }
}

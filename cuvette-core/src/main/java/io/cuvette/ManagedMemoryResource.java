package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PoolProperties;
import io.cuvette.internal.base.CudaVersion;
import io.cuvette.internal.driverpool.BorrowedPool;
import io.cuvette.internal.driverpool.DriverPool;
import io.cuvette.internal.driverpool.MadePool;
import io.cuvette.internal.driverpool.PoolSource;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Stream-ordered managed memory from one pool of the driver; needs a driver of CUDA 13 and devices
 * with {@link DeviceAttribute#CONCURRENT_MANAGED_ACCESS}. It cannot be shared with other processes.
 * Thread-safe.
 */
public final class ManagedMemoryResource extends DriverPoolResource {
  private static final System.Logger LOGGER =
      System.getLogger(ManagedMemoryResource.class.getName());
  private static final AtomicBoolean WARNED = new AtomicBoolean();
  private static final int FIRST_VERSION = 13000;

  private final @Nullable MemoryLocation preferred;

  /**
   * Memory from the pool that is current for managed memory without a preferred location; it is not
   * owned (cuMemGetMemPool).
   *
   * @param cuda the Cuda
   * @throws CudaException NOT_SUPPORTED if the devices have no such pool, with the reason;
   *     CALL_REQUIRES_NEWER_DRIVER before CUDA 13
   */
  public ManagedMemoryResource(Cuda cuda) {
    this(cuda, () -> current(cuda, null), null);
  }

  /**
   * Memory from a new pool, which keeps what it once held until it is trimmed (cuMemPoolCreate).
   *
   * @param cuda the Cuda
   * @param options the options
   * @throws IllegalArgumentException if there is no such device
   * @throws IllegalStateException if the NUMA node nearest to the current device is requested and
   *     not known
   * @throws CudaException NOT_SUPPORTED if the devices have no such pool, with the reason;
   *     CALL_REQUIRES_NEWER_DRIVER before CUDA 13
   */
  public ManagedMemoryResource(Cuda cuda, ManagedMemoryResourceOptions options) {
    this(cuda, preferred(cuda, options));
  }

  private static @Nullable MemoryLocation preferred(
      Cuda cuda, ManagedMemoryResourceOptions options) {
    Objects.requireNonNull(options, "options");
    checkVersion(cuda); // an older driver may not know that attribute of the device either
    return options.resolve(cuda.session().state().device);
  }

  private ManagedMemoryResource(Cuda cuda, @Nullable MemoryLocation preferred) {
    this(cuda, () -> create(cuda, preferred), preferred);
  }

  private ManagedMemoryResource(
      Cuda cuda, Supplier<DriverPool> pool, @Nullable MemoryLocation preferred) {
    super(cuda, PoolSource.unshared(open(cuda, pool, preferred)), BufferKind.MANAGED);
    this.preferred = preferred;
  }

  /**
   * {@return a resource on the pool that is current for managed memory with a preferred location,
   * which it does not own (cuMemGetMemPool)}
   *
   * @param cuda the Cuda
   * @param preferred the preferred place
   * @throws IllegalArgumentException if there is no such device, or the NUMA node is that of the
   *     calling thread
   * @throws CudaException if the driver reports an error
   */
  public static ManagedMemoryResource ofCurrent(Cuda cuda, MemoryLocation preferred) {
    Objects.requireNonNull(cuda, "cuda");
    Objects.requireNonNull(preferred, "preferred");
    if (preferred == MemoryLocation.hostNumaCurrent()) {
      throw new IllegalArgumentException("location: " + preferred + " (expected: a certain node)");
    }
    return new ManagedMemoryResource(cuda, () -> current(cuda, preferred), preferred);
  }

  private static DriverPool open(
      Cuda cuda, Supplier<DriverPool> pool, @Nullable MemoryLocation preferred) {
    checkVersion(cuda);
    if (preferred instanceof MemoryLocation.Device device) {
      cuda.device(device.id()); // there is such a device
    }
    warnOnce(cuda);
    try {
      return pool.get();
    } catch (CudaException e) {
      throw explained(e, cuda);
    }
  }

  private static DriverPool current(Cuda cuda, @Nullable MemoryLocation preferred) {
    int type = preferred == null ? MemLocationType.NONE : preferred.type();
    int id = preferred == null ? 0 : preferred.id();
    CudaDriver driver = cuda.driver();
    return BorrowedPool.borrow(
        cuda.engine().driverPools(),
        () -> driver.pools().memGetMemPool(type, id, MemAllocationType.MANAGED));
  }

  private static DriverPool create(Cuda cuda, @Nullable MemoryLocation preferred) {
    return MadePool.createKeeping(
        cuda.engine().driverPools(),
        preferred == null
            ? new PoolProperties(MemAllocationType.MANAGED, 0, MemLocationType.NONE, 0, 0)
            : poolAt(preferred, MemAllocationType.MANAGED, MemHandleType.NONE, 0));
  }

  private static void checkVersion(Cuda cuda) {
    int version = Objects.requireNonNull(cuda, "cuda").driverVersion();
    if (version < FIRST_VERSION) {
      throw new CudaException(
          CudaStatus.CALL_REQUIRES_NEWER_DRIVER,
          "ManagedMemoryResource",
          CudaVersion.tooOld(version, FIRST_VERSION));
    }
  }

  private static CudaException explained(CudaException e, Cuda cuda) {
    if (e.status() != CudaStatus.NOT_SUPPORTED) {
      return e;
    }
    List<CudaDevice> without = withoutConcurrentAccess(cuda);
    String why =
        without.isEmpty()
            ? "this driver or machine has no such pool of managed memory"
            : "%s has no concurrent managed access, which pools of managed memory need"
                .formatted(without.getFirst());
    return e.explained(why + "; Cuda.allocateManaged works without");
  }

  private static List<CudaDevice> withoutConcurrentAccess(Cuda cuda) {
    return cuda.devices().stream()
        .filter(device -> device.attribute(DeviceAttribute.CONCURRENT_MANAGED_ACCESS) == 0)
        .toList();
  }

  private static void warnOnce(Cuda cuda) {
    List<CudaDevice> without = withoutConcurrentAccess(cuda);
    if (!without.isEmpty() && WARNED.compareAndSet(false, true)) {
      LOGGER.log(
          System.Logger.Level.WARNING,
          "{0} has no concurrent managed access: the host must not touch managed memory while any"
              + " device works",
          without.getFirst());
    }
  }

  @Override
  public ManagedBuffer allocate(long bytes, CudaStream stream) {
    return (ManagedBuffer) take(bytes, stream);
  }

  @Override
  public ManagedBuffer allocate(long bytes) {
    return allocate(bytes, cuda().currentStream());
  }

  /** {@return the preferred place of the memory} */
  public Optional<MemoryLocation> preferredLocation() {
    return Optional.ofNullable(preferred);
  }

  /** {@return true: its memory has one address for the host and all devices} */
  public boolean isManaged() {
    return true;
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

package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemHandleType;
import io.cuvette.internal.async.OrderedFailures;
import io.cuvette.internal.channel.Descriptors;
import io.cuvette.internal.channel.PoolHandle;
import io.cuvette.internal.driverpool.BorrowedPool;
import io.cuvette.internal.driverpool.DriverPool;
import io.cuvette.internal.driverpool.MadePool;
import io.cuvette.internal.driverpool.PoolExport;
import io.cuvette.internal.driverpool.PoolSource;
import java.util.Collection;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.function.Supplier;

/** Stream-ordered memory of one device from one pool of the driver. Thread-safe. */
public final class DeviceMemoryResource extends DriverPoolResource {
  private final CudaDevice device;
  private final PoolPeers peers;

  /**
   * Memory from the pool that is current for the device now; it is not owned (cuDeviceGetMemPool).
   *
   * @param device the device
   * @throws CudaException if the driver or the device has no stream-ordered memory
   */
  public DeviceMemoryResource(CudaDevice device) {
    this(device, PoolSource.unshared(explaining(device, () -> current(device))));
  }

  /**
   * Memory from a new pool, which keeps what it once held until it is trimmed (cuMemPoolCreate).
   *
   * @param device the device
   * @param options the options
   * @throws UnsupportedOperationException with {@code ipcEnabled} on a system other than Linux
   * @throws CudaException if the driver or the device has no stream-ordered memory, or with {@code
   *     ipcEnabled} cannot share it
   */
  public DeviceMemoryResource(CudaDevice device, DeviceMemoryResourceOptions options) {
    this(device, create(device, options));
  }

  private DeviceMemoryResource(CudaDevice device, PoolSource source) {
    super(device.cuda(), source, BufferKind.DEVICE);
    this.device = device;
    this.peers = new PoolPeers(pool(), device, this);
  }

  private static DriverPool current(CudaDevice device) {
    Objects.requireNonNull(device, "device");
    CudaDriver driver = device.core().context();
    return BorrowedPool.borrow(
        device.cuda().engine().driverPools(), () -> driver.pools().deviceGetMemPool(device.id()));
  }

  private static DriverPool explaining(CudaDevice device, Supplier<DriverPool> pool) {
    try {
      return pool.get();
    } catch (CudaException e) {
      throw OrderedFailures.explained(e, device.core());
    }
  }

  private static PoolSource create(CudaDevice device, DeviceMemoryResourceOptions options) {
    Objects.requireNonNull(options, "options");
    MemoryLocation here = MemoryLocation.device(device);
    if (!options.ipcEnabled()) {
      var properties =
          poolAt(here, MemAllocationType.PINNED, MemHandleType.NONE, options.maxBytes());
      return PoolSource.unshared(
          explaining(
              device,
              () -> MadePool.createKeeping(device.cuda().engine().driverPools(), properties)));
    }
    Descriptors.require("DeviceMemoryResource with ipcEnabled");
    var properties =
        poolAt(here, MemAllocationType.PINNED, MemHandleType.FILE_DESCRIPTOR, options.maxBytes());
    try {
      return PoolExport.create(
          device.cuda().engine().driverPools(), properties, BufferDescriptor.Kind.DEVICE_POOL);
    } catch (CudaException e) {
      throw PoolExport.explained(
          e,
          device.core(),
          DeviceAttribute.MEMPOOL_SUPPORTED_HANDLE_TYPES,
          "plain memory of MemoryResource.direct() may be shareable");
    }
  }

  /**
   * Imports the pool of another process (cuMemPoolImportFromShareableHandle). If a resource is
   * registered under the handle's UUID, that is the result; a new one is registered. Peer access is
   * not taken over from the exporter: grant it here with {@link #peerAccessibleBy()}.
   *
   * <p>The driver does not report the kind of a pool: a handle of host memory is taken too, and the
   * first {@link #importBuffer} of it refuses.
   *
   * @param device whose memory it is
   * @param handle stays the caller's to close, at once if they like
   * @return the resource
   * @throws IllegalArgumentException if a resource of another class or device is registered under
   *     the UUID, or the driver reports that the pool belongs to another device
   * @throws IllegalStateException if the handle is closed
   * @throws CudaException if the descriptor is of no pool
   */
  public static DeviceMemoryResource fromAllocationHandle(
      CudaDevice device, AllocationHandle handle) {
    Objects.requireNonNull(device, "device");
    Objects.requireNonNull(handle, "handle");
    DeviceMemoryResource found =
        fromHandle(
            device.cuda(),
            device.core(),
            handle,
            DeviceMemoryResource.class,
            BufferDescriptor.Kind.DEVICE_POOL,
            source -> mapped(device, source));
    return checkDevice(found, device);
  }

  private static DeviceMemoryResource mapped(CudaDevice device, PoolSource source) {
    List<Integer> accessors = source.pool().accessors();
    if (!accessors.isEmpty() && !accessors.contains(device.id())) {
      throw new IllegalArgumentException(
          "device: %s cannot access the pool (expected: the pool's own, one of %s)"
              .formatted(device, accessors));
    }
    return new DeviceMemoryResource(device, source);
  }

  /**
   * Imports the pool of another process from a raw descriptor, which the caller closes. The pool
   * has no UUID until {@link #register}.
   *
   * @param device the device
   * @param descriptor the descriptor of the exporting process
   * @return the resource
   * @throws IllegalArgumentException if the descriptor is negative or not open
   * @see #fromAllocationHandle(CudaDevice, AllocationHandle)
   */
  public static DeviceMemoryResource fromAllocationHandle(CudaDevice device, int descriptor) {
    try (AllocationHandle handle = new AllocationHandle(PoolHandle.duplicate(descriptor))) {
      return fromAllocationHandle(device, handle);
    }
  }

  /**
   * {@return the resource that is registered under a UUID}
   *
   * @param cuda the Cuda
   * @param uuid the UUID of the pool
   * @throws NoSuchElementException naming the UUID if there is none, or it was closed or forgotten
   * @throws IllegalArgumentException if it is not of this class
   */
  public static DeviceMemoryResource fromRegistry(Cuda cuda, UUID uuid) {
    Objects.requireNonNull(cuda, "cuda");
    Objects.requireNonNull(uuid, "uuid");
    cuda.checkOpen();
    return cuda.registry().get(uuid, DeviceMemoryResource.class);
  }

  /**
   * {@return the resource of a device that is registered under a UUID}
   *
   * @param device the device
   * @param uuid the UUID of the pool
   * @throws IllegalArgumentException if it is another device's
   * @see #fromRegistry(Cuda, UUID)
   */
  public static DeviceMemoryResource fromRegistry(CudaDevice device, UUID uuid) {
    Objects.requireNonNull(device, "device");
    return checkDevice(fromRegistry(device.cuda(), uuid), device);
  }

  private static DeviceMemoryResource checkDevice(DeviceMemoryResource found, CudaDevice device) {
    if (!found.device.equals(device)) {
      throw new IllegalArgumentException(
          "device: %s (expected: %s, as %s is registered)".formatted(device, found.device, found));
    }
    return found;
  }

  /**
   * Registers this resource in its Cuda, which does not keep it reachable.
   *
   * @param uuid becomes the pool's if it has none
   * @return the resource registered under the UUID: the earlier one if there is one
   * @throws IllegalStateException if this is not IPC-enabled, closed, or has another UUID
   * @throws IllegalArgumentException if the earlier one is of another class
   */
  public DeviceMemoryResource register(UUID uuid) {
    Objects.requireNonNull(uuid, "uuid");
    return register(uuid, DeviceMemoryResource.class);
  }

  /**
   * Imports a buffer of this pool in order of this thread's current stream of the device.
   *
   * @param descriptor the descriptor of the exporting process
   * @return the buffer
   * @see #importBuffer(BufferDescriptor, CudaStream)
   */
  public DeviceBuffer importBuffer(BufferDescriptor descriptor) {
    Objects.requireNonNull(descriptor, "descriptor");
    return importBuffer(descriptor, device.cuda().currentStream(device));
  }

  /**
   * Imports a buffer of this pool from another process (cuMemPoolImportPointer). Its memory may be
   * touched once the exporter's allocation is complete: order the stream behind it, with an event
   * of the exporter for example. Closing frees in order of the stream. An allocation that is
   * imported several times is mapped once, and freed with the last buffer, behind the work of all.
   *
   * <p>If the same allocation was freed just before and that free is still queued, this waits for
   * it.
   *
   * @param descriptor the descriptor of the exporting process
   * @param stream of this device
   * @return the buffer
   * @throws IllegalArgumentException if the descriptor is of another kind, claims more than the
   *     allocation has, or names another device
   * @throws IllegalStateException if this resource is closed or not IPC-enabled
   * @throws CudaException INVALID_VALUE if it is of another pool
   */
  public DeviceBuffer importBuffer(BufferDescriptor descriptor, CudaStream stream) {
    Objects.requireNonNull(descriptor, "descriptor");
    Objects.requireNonNull(stream, "stream");
    checkStream(stream);
    for (CudaDevice other : device.cuda().devices()) {
      if (!other.equals(device) && other.uuid().equals(descriptor.deviceUuid())) {
        throw new IllegalArgumentException(
            "descriptor: memory of %s (expected: of %s)".formatted(other, device));
      }
    }
    return (DeviceBuffer)
        importBuffer(descriptor, BufferDescriptor.Kind.DEVICE_POOL, stream, BufferKind.DEVICE);
  }

  @Override
  public DeviceBuffer allocate(long bytes, CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    checkStream(stream);
    return (DeviceBuffer) take(bytes, stream);
  }

  private void checkStream(CudaStream stream) {
    if (!stream.device().equals(device)) {
      throw new IllegalArgumentException(
          "%s%s (expected: a stream of %s)"
              .formatted(
                  stream,
                  stream.device().cuda() == device.cuda() ? "" : " of another Cuda",
                  device));
    }
  }

  /** Allocates in order of this thread's current stream of the resource's device. */
  @Override
  public DeviceBuffer allocate(long bytes) {
    return allocate(bytes, device.cuda().currentStream(device));
  }

  /**
   * {@return the other devices that can access the memory, as a live set: adding grants read and
   * write access, removing revokes it, and each bulk operation is one call of the driver
   * (cuMemPoolSetAccess)} A device that cannot reach the memory is an IllegalArgumentException; the
   * device itself is never part of it. In ascending order. Copies work without, see {@link
   * Buffer#copyFrom(Buffer, CudaStream)}.
   *
   * @throws CudaException if the driver reports an error
   */
  public Set<CudaDevice> peerAccessibleBy() {
    return peers;
  }

  /**
   * Makes {@link #peerAccessibleBy()} have exactly some devices, with one call of the driver
   * (cuMemPoolSetAccess) for all that are new and all that are gone, and none if nothing changes.
   *
   * @param devices the resource's own is passed over
   * @throws IllegalArgumentException if one of them cannot reach the memory or is of another {@link
   *     Cuda}; nothing changed then
   * @throws IllegalStateException if the resource is closed
   * @throws CudaException if the driver reports an error
   */
  public void setPeerAccessibleBy(Collection<CudaDevice> devices) {
    Objects.requireNonNull(devices, "devices");
    pool().checkOpen();
    peers.assign(devices);
  }

  @Override
  public boolean isDeviceAccessible() {
    return true;
  }

  @Override
  public boolean isHostAccessible() {
    return false;
  }

  @Override
  public int deviceId() {
    return device.id();
  }

  @Override
  public String toString() {
    return "DeviceMemoryResource[%s, %s]".formatted(device, pool());
  }
}

package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.channel.Descriptors;
import io.cuvette.internal.channel.PoolHandle;
import io.cuvette.internal.driverpool.BorrowedPool;
import io.cuvette.internal.driverpool.DriverPool;
import io.cuvette.internal.driverpool.MadePool;
import io.cuvette.internal.driverpool.PoolExport;
import io.cuvette.internal.driverpool.PoolSource;
import io.cuvette.internal.session.Device;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.UUID;

/**
 * Stream-ordered page-locked host memory from one pool of the driver. Not every driver can make
 * such pools; one that cannot is a clear error, and {@link Cuda#allocatePinned} works everywhere.
 * Thread-safe.
 */
public final class PinnedMemoryResource extends DriverPoolResource {
  private static final int NO_NODE = -1;

  private final int numaId;

  /**
   * Memory from the pool that is current for host memory now; it is not owned (cuMemGetMemPool,
   * CUDA 13). All devices get access to it, for everyone in this process: the driver lets only the
   * host in.
   *
   * @param cuda the Cuda
   * @throws CudaException if the driver reports an error
   */
  public PinnedMemoryResource(Cuda cuda) {
    this(cuda, PoolSource.unshared(current(cuda)), NO_NODE);
  }

  /**
   * Memory from a new pool, which keeps what it once held until it is trimmed (cuMemPoolCreate).
   * With {@code ipcEnabled} and no NUMA node it is placed on the node nearest to this thread's
   * current device: the driver shares pools with a node only.
   *
   * @param cuda the Cuda
   * @param options the options
   * @throws IllegalStateException with {@code ipcEnabled} and no node, if the current device has no
   *     nearest node
   * @throws UnsupportedOperationException with {@code ipcEnabled} on a system other than Linux
   * @throws CudaException if the driver or the machine cannot make such a pool, or share it
   */
  public PinnedMemoryResource(Cuda cuda, PinnedMemoryResourceOptions options) {
    this(cuda, options, node(cuda, options));
  }

  private PinnedMemoryResource(Cuda cuda, PinnedMemoryResourceOptions options, int numaId) {
    this(cuda, create(cuda, options, numaId), numaId);
  }

  private PinnedMemoryResource(Cuda cuda, PoolSource source, int numaId) {
    super(cuda, source, BufferKind.PINNED);
    this.numaId = numaId;
  }

  private static int node(Cuda cuda, PinnedMemoryResourceOptions options) {
    Objects.requireNonNull(cuda, "cuda");
    Objects.requireNonNull(options, "options");
    if (options.numaId().isPresent() || !options.ipcEnabled()) {
      return options.numaId().orElse(NO_NODE);
    }
    Descriptors.require("PinnedMemoryResource with ipcEnabled");
    CudaDevice device = cuda.currentDevice();
    int node = device.core().nearestNode();
    if (node < 0) {
      throw new IllegalStateException(
          "HOST_NUMA_ID of %s: %d, and a pool that is shared needs a node (expected:"
                  .formatted(device, node)
              + " options.withNumaId(…), or another current device with CudaDevice.use)");
    }
    return node;
  }

  /**
   * Imports the pool of another process (cuMemPoolImportFromShareableHandle). If a resource is
   * registered under the handle's UUID, that is the result; a new one is registered. Its {@link
   * #numaId()} is −1: not reported by the driver.
   *
   * <p>Devices copy from and to its buffers, but have no access: a driver that granted it breaks
   * the host pools of this process later. So a fill is made of copies, and with a real driver both
   * are as for pageable memory: the call returns when the stream has come to them.
   *
   * <p>The driver does not report the kind of a pool: a handle of device memory is taken too, and
   * the first {@link #importBuffer} of it refuses.
   *
   * @param cuda the Cuda
   * @param handle stays the caller's to close, at once if they like
   * @return the resource
   * @throws IllegalArgumentException if a resource of another class is registered
   * @throws IllegalStateException if the handle is closed
   * @throws CudaException if the descriptor is of no pool
   */
  public static PinnedMemoryResource fromAllocationHandle(Cuda cuda, AllocationHandle handle) {
    Objects.requireNonNull(cuda, "cuda");
    Objects.requireNonNull(handle, "handle");
    return fromHandle(
        cuda,
        null,
        handle,
        PinnedMemoryResource.class,
        BufferDescriptor.Kind.HOST_POOL,
        source -> new PinnedMemoryResource(cuda, source, NO_NODE));
  }

  /**
   * Imports the pool of another process from a raw descriptor, which the caller closes. The pool
   * has no UUID until {@link #register}.
   *
   * @param cuda the Cuda
   * @param descriptor the descriptor of the exporting process
   * @return the resource
   * @throws IllegalArgumentException if the descriptor is negative or not open
   * @see #fromAllocationHandle(Cuda, AllocationHandle)
   */
  public static PinnedMemoryResource fromAllocationHandle(Cuda cuda, int descriptor) {
    try (AllocationHandle handle = new AllocationHandle(PoolHandle.duplicate(descriptor))) {
      return fromAllocationHandle(cuda, handle);
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
  public static PinnedMemoryResource fromRegistry(Cuda cuda, UUID uuid) {
    Objects.requireNonNull(cuda, "cuda");
    Objects.requireNonNull(uuid, "uuid");
    cuda.checkOpen();
    return cuda.registry().get(uuid, PinnedMemoryResource.class);
  }

  /**
   * Registers this resource in its Cuda, which does not keep it reachable.
   *
   * @param uuid becomes the pool's if it has none
   * @return the resource registered under the UUID: the earlier one if there is one
   * @throws IllegalStateException if this is not IPC-enabled, closed, or has another UUID
   * @throws IllegalArgumentException if the earlier one is of another class
   */
  public PinnedMemoryResource register(UUID uuid) {
    Objects.requireNonNull(uuid, "uuid");
    return register(uuid, PinnedMemoryResource.class);
  }

  /**
   * Imports a buffer of this pool in order of this thread's current stream.
   *
   * @param descriptor the descriptor of the exporting process
   * @return the buffer
   * @see #importBuffer(BufferDescriptor, CudaStream)
   */
  public PinnedBuffer importBuffer(BufferDescriptor descriptor) {
    Objects.requireNonNull(descriptor, "descriptor");
    return importBuffer(descriptor, cuda().currentStream());
  }

  /**
   * Imports a buffer of this pool from another process, whose host can use it through {@link
   * PinnedBuffer#segment()} (cuMemPoolImportPointer). The rules and errors are those of {@link
   * DeviceMemoryResource#importBuffer(BufferDescriptor, CudaStream)}; the stream can be any
   * device's.
   *
   * @param descriptor the descriptor of the exporting process
   * @param stream the stream
   * @return the buffer
   * @throws CudaException if the driver reports an error
   */
  public PinnedBuffer importBuffer(BufferDescriptor descriptor, CudaStream stream) {
    Objects.requireNonNull(descriptor, "descriptor");
    Objects.requireNonNull(stream, "stream");
    return (PinnedBuffer)
        importBuffer(descriptor, BufferDescriptor.Kind.HOST_POOL, stream, BufferKind.PINNED);
  }

  private static DriverPool current(Cuda cuda) {
    Objects.requireNonNull(cuda, "cuda");
    MemoryLocation host = MemoryLocation.host();
    DriverPool pool;
    try {
      cuda.checkOpen();
      pool =
          BorrowedPool.borrow(
              cuda.engine().driverPools(),
              () ->
                  cuda.driver()
                      .pools()
                      .memGetMemPool(host.type(), host.id(), MemAllocationType.PINNED));
    } catch (CudaException e) {
      throw explained(e, NO_NODE);
    }
    try {
      grantAccess(pool);
      return pool;
    } catch (RuntimeException | OutOfMemoryError e) {
      Failures.runAfter(e, pool::close);
      throw e;
    }
  }

  /** Grants access to the host alone. What a device has already is not requested again. */
  private static void grantAccess(DriverPool pool) {
    List<Device> outside =
        pool.session().devices().stream().filter(device -> !hasAccess(pool, device)).toList();
    if (!outside.isEmpty()) {
      pool.setAccess(outside, MemAccessFlags.READ_WRITE);
    }
  }

  private static boolean hasAccess(DriverPool pool, Device device) {
    return pool.ask(driver ->
        driver.pools().memPoolGetAccess(pool.handle(), MemLocationType.DEVICE, device.id()))
        == MemAccessFlags.READ_WRITE;
  }

  private static PoolSource create(Cuda cuda, PinnedMemoryResourceOptions options, int node) {
    PoolSource made = options.ipcEnabled() ? shared(cuda, options, node) : own(cuda, options, node);
    try {
      grantAccess(made.pool());
      return made;
    } catch (RuntimeException | OutOfMemoryError e) {
      PoolExport sharing = made.sharing();
      if (sharing != null) {
        Failures.runAfter(e, sharing.handle()::close);
      }
      Failures.runAfter(e, made.pool()::close);
      throw e;
    }
  }

  private static PoolSource own(Cuda cuda, PinnedMemoryResourceOptions options, int node) {
    MemoryLocation location =
        node == NO_NODE ? MemoryLocation.host() : MemoryLocation.hostNuma(node);
    try {
      return PoolSource.unshared(
          MadePool.createKeeping(
              cuda.engine().driverPools(),
              poolAt(location, MemAllocationType.PINNED, MemHandleType.NONE, options.maxBytes())));
    } catch (CudaException e) {
      throw explained(e, node);
    }
  }

  private static PoolSource shared(Cuda cuda, PinnedMemoryResourceOptions options, int node) {
    Descriptors.require("PinnedMemoryResource with ipcEnabled");
    var properties =
        poolAt(
            MemoryLocation.hostNuma(node),
            MemAllocationType.PINNED,
            MemHandleType.FILE_DESCRIPTOR,
            options.maxBytes());
    try {
      return PoolExport.create(
          cuda.engine().driverPools(), properties, BufferDescriptor.Kind.HOST_POOL);
    } catch (CudaException e) {
      throw PoolExport.explained(
          e,
          cuda.currentDevice().core(),
          DeviceAttribute.HOST_NUMA_MEMORY_POOLS_SUPPORTED,
          "a DeviceMemoryResource with ipcEnabled shares device memory; numaId: %d may be a node that"
                  .formatted(node)
              + " the machine does not have (./cuvette info lists them)");
    }
  }

  private static CudaException explained(CudaException e, int node) {
    return switch (e.status()) {
      case NOT_SUPPORTED, CALL_REQUIRES_NEWER_DRIVER, INVALID_VALUE ->
          e.explained(
              (node == NO_NODE ? "" : "numaId: " + node + " is no node of this machine, or ")
                  + "this driver or machine has no such pool of host memory; Cuda.allocatePinned"
                  + " works everywhere");
      default -> e;
    };
  }

  /**
   * Allocates in order of a stream.
   *
   * @throws OutOfPinnedMemoryException if the pool has no room, after everything was tried
   */
  @Override
  public PinnedBuffer allocate(long bytes, CudaStream stream) {
    try {
      return (PinnedBuffer) take(bytes, stream);
    } catch (OutOfDeviceMemoryException e) {
      throw OutOfPinnedMemoryException.of(e);
    }
  }

  @Override
  public PinnedBuffer allocate(long bytes) {
    return allocate(bytes, cuda().currentStream());
  }

  /**
   * {@return the NUMA node of the host the pool is placed on; −1 if the operating system places it,
   * or it is another process's}
   */
  public int numaId() {
    return numaId;
  }

  /** Always true; devices reach the memory of a mapped one by copies alone. */
  @Override
  public boolean isDeviceAccessible() {
    return true;
  }

  @Override
  public boolean isHostAccessible() {
    return true;
  }

  @Override
  public int deviceId() {
    return -1;
  }

  @Override
  public String toString() {
    return "PinnedMemoryResource[%s, numaId=%d]".formatted(pool(), numaId);
  }
}

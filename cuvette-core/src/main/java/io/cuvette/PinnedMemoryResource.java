package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.util.OptionalInt;

/**
 * Stream-ordered page-locked host memory from one pool of the driver. Not every driver can make
 * such pools; one that cannot is a clear error, and {@link Cuda#allocatePinned} works everywhere.
 * Thread-safe.
 */
public final class PinnedMemoryResource extends DriverPoolResource {
  private static final int NO_NODE = -1;
  private static final int READ_AND_WRITE = 3;

  private final int numaId;

  /**
   * Memory from the pool that is current for host memory now; it is not owned (cuMemGetMemPool,
   * CUDA 13).
   */
  public PinnedMemoryResource(Cuda cuda) {
    this(current(cuda), NO_NODE);
  }

  /**
   * Memory from a new pool, which keeps what it once held until it is trimmed (cuMemPoolCreate).
   */
  public PinnedMemoryResource(Cuda cuda, PinnedMemoryResourceOptions options) {
    this(create(cuda, options), options.numaId().orElse(NO_NODE));
  }

  private PinnedMemoryResource(DriverPool pool, int numaId) {
    super(pool, (address, bytes, stream) -> new PinnedBuffer(address, bytes, null, stream));
    this.numaId = numaId;
  }

  private static DriverPool current(Cuda cuda) {
    MemoryLocation host = MemoryLocation.host();
    try {
      cuda.checkOpen();
      return DriverPool.borrow(
          cuda, cuda.driver().memGetMemPool(host.type(), host.id(), DriverPool.PINNED));
    } catch (CudaException e) {
      throw explained(e);
    }
  }

  private static DriverPool create(Cuda cuda, PinnedMemoryResourceOptions options) {
    OptionalInt node = options.numaId();
    MemoryLocation location =
        node.isPresent() ? MemoryLocation.hostNuma(node.getAsInt()) : MemoryLocation.host();
    DriverPool pool;
    try {
      pool =
          DriverPool.createKeeping(
              cuda, DriverPool.at(location, DriverPool.PINNED, options.maxBytes()));
    } catch (CudaException e) {
      throw explained(e);
    }
    try {
      pool.setAccess(cuda.devices(), READ_AND_WRITE);
      return pool;
    } catch (RuntimeException e) {
      Failures.closeAfter(e, pool::close);
      throw e;
    }
  }

  private static CudaException explained(CudaException e) {
    return switch (e.status()) {
      case NOT_SUPPORTED, CALL_REQUIRES_NEWER_DRIVER, INVALID_VALUE ->
          new CudaException(
              CudaStatus.of(e.code()),
              e.call(),
              "this driver or machine has no such pool of host memory; Cuda.allocatePinned works"
                  + " everywhere");
      default -> e;
    };
  }

  @Override
  public PinnedBuffer allocate(long bytes, CudaStream stream) {
    return (PinnedBuffer) take(bytes, stream);
  }

  @Override
  public PinnedBuffer allocate(long bytes) {
    return allocate(bytes, pool().cuda().currentStream());
  }

  /** The NUMA node of the host the pool is placed on; −1 if the operating system places it. */
  public int numaId() {
    return numaId;
  }

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

package io.cuvette;

import java.util.Set;

/** Stream-ordered memory of one device from one pool of the driver. Thread-safe. */
public final class DeviceMemoryResource extends DriverPoolResource {
  private final CudaDevice device;
  private final PoolPeers peers;

  /**
   * Memory from the pool that is current for the device now; it is not owned (cuDeviceGetMemPool).
   */
  public DeviceMemoryResource(CudaDevice device) {
    this(device, DriverPool.borrow(device.cuda(), device.context().deviceGetMemPool(device.id())));
  }

  /**
   * Memory from a new pool, which keeps what it once held until it is trimmed (cuMemPoolCreate).
   */
  public DeviceMemoryResource(CudaDevice device, DeviceMemoryResourceOptions options) {
    this(
        device,
        DriverPool.createKeeping(
            device.cuda(),
            DriverPool.at(MemoryLocation.device(device), DriverPool.PINNED, options.maxBytes())));
  }

  private DeviceMemoryResource(CudaDevice device, DriverPool pool) {
    super(pool, DeviceBuffer::new);
    this.device = device;
    this.peers = new PoolPeers(pool, device);
  }

  @Override
  public DeviceBuffer allocate(long bytes, CudaStream stream) {
    if (!stream.device().equals(device)) {
      throw new IllegalArgumentException("%s (expected: a stream of %s)".formatted(stream, device));
    }
    return (DeviceBuffer) take(bytes, stream);
  }

  /** Allocates in order of this thread's current stream of the resource's device. */
  @Override
  public DeviceBuffer allocate(long bytes) {
    return allocate(bytes, device.cuda().currentStream(device));
  }

  /**
   * The other devices that can access the memory, as a live set: adding grants read and write
   * access, removing takes it back, and each bulk operation is one call of the driver
   * (cuMemPoolSetAccess). A device that cannot reach the memory is an IllegalArgumentException; the
   * device itself is never part of it. In ascending order.
   */
  public Set<CudaDevice> peerAccessibleBy() {
    return peers;
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
  void beforeDestroy() {
    if (isHandleOwned()) {
      peers.clear();
    }
  }

  @Override
  public String toString() {
    return "DeviceMemoryResource[%s, %s]".formatted(device, pool());
  }
}

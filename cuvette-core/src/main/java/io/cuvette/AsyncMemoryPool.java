package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.internal.async.OrderedDevicePool;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.index.BlockArena;
import io.cuvette.internal.session.ObjectEnding;
import java.lang.ref.Reference;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * Stream-ordered memory from pools of the driver (cuMemAllocFromPoolAsync, cuMemFreeAsync), one
 * pool for each device, with the face of CuPy's MemoryAsyncPool. It allocates from the pool that
 * was stated and changes no current pool. The limit is hard and counts what was allocated through
 * this object and not freed yet.
 *
 * <p>What is freed is kept for the next allocation. How much a pool keeps over a synchronisation is
 * its {@link PoolAttributes#releaseThreshold()}; that of a pool which is not this object's own, 0
 * at first, is raised to {@link Long#MAX_VALUE} while this is open. The last of those that use the
 * pool restores it when closed, unless another value was set since, and releases at once what the
 * pool would by itself at the next synchronisation. With {@link AsyncPoolOptions#thresholdRaised()}
 * off it is left alone.
 *
 * <p>Used, free and total bytes are the driver's numbers of the whole pool, whichever program uses
 * it. Methods without a device are about the current device of the thread. Thread-safe; freeing
 * never waits.
 */
public final class AsyncMemoryPool implements MemoryResource, AutoCloseable {
  private final Cuda cuda;
  private final List<AsyncPoolChoice> choices;
  private final AsyncPoolOptions options;
  private final AtomicReferenceArray<@Nullable OrderedDevicePool> devicePools;
  private final ObjectEnding ending;

  /**
   * The pools that are current for the devices now.
   *
   * @param cuda the Cuda
   */
  public AsyncMemoryPool(Cuda cuda) {
    this(cuda, AsyncPoolChoice.ofCurrent());
  }

  /**
   * The same choice for each device; a handle needs a machine of one device.
   *
   * @param cuda the Cuda
   * @param choice the pool of the driver, for all devices
   */
  public AsyncMemoryPool(Cuda cuda, AsyncPoolChoice choice) {
    this(cuda, choice, AsyncPoolOptions.DEFAULTS);
  }

  /**
   * The same choice for each device; a handle needs a machine of one device.
   *
   * @param cuda the Cuda
   * @param choice the pool of the driver, for all devices
   * @param options the options
   */
  public AsyncMemoryPool(Cuda cuda, AsyncPoolChoice choice, AsyncPoolOptions options) {
    this(cuda, forEach(cuda, choice), options);
  }

  /**
   * A choice for each device.
   *
   * @param cuda the Cuda
   * @param choices the pool of the driver for each device, in the order of devices
   */
  public AsyncMemoryPool(Cuda cuda, List<AsyncPoolChoice> choices) {
    this(cuda, choices, AsyncPoolOptions.DEFAULTS);
  }

  /**
   * A choice for each device. Pools that exist are looked up now, new ones are made when their
   * device is first used.
   *
   * @param cuda the Cuda
   * @param choices the pool of the driver for each device, in the order of devices
   * @param options the options
   * @throws IllegalArgumentException if there are not as many choices as devices, or a handle is
   *     not that of a pool which its device can access
   * @throws CudaException if the driver or a device has no stream-ordered memory
   */
  public AsyncMemoryPool(Cuda cuda, List<AsyncPoolChoice> choices, AsyncPoolOptions options) {
    Objects.requireNonNull(cuda, "cuda");
    Objects.requireNonNull(choices, "choices");
    Objects.requireNonNull(options, "options");
    if (choices.size() != cuda.deviceCount()) {
      throw new IllegalArgumentException(
          "choices: %d (expected: %d, one for each device)"
              .formatted(choices.size(), cuda.deviceCount()));
    }
    this.cuda = cuda;
    this.choices = List.copyOf(choices);
    this.options = options;
    this.devicePools = new AtomicReferenceArray<>(cuda.deviceCount());
    cuda.checkOpen();
    var pools = devicePools; // which the end knows, and not this
    this.ending =
        ObjectEnding.of(this, cuda.session(), toString(), owns(choices), () -> close(pools));
    try {
      lookUp();
    } catch (RuntimeException | OutOfMemoryError e) {
      Failures.runAfter(e, this::close);
      throw e;
    }
  }

  private static boolean owns(List<AsyncPoolChoice> choices) {
    return choices.stream().anyMatch(AsyncPoolChoice.New.class::isInstance);
  }

  private void lookUp() {
    for (CudaDevice device : cuda.devices()) {
      if (!(choices.get(device.id()) instanceof AsyncPoolChoice.New)) {
        devicePools.set(device.id(), make(device));
      }
    }
  }

  private static List<AsyncPoolChoice> forEach(Cuda cuda, AsyncPoolChoice choice) {
    int devices = Objects.requireNonNull(cuda, "cuda").deviceCount();
    Objects.requireNonNull(choice, "choice");
    if (choice instanceof AsyncPoolChoice.Handle && devices != 1) {
      throw new IllegalArgumentException(
          "one pool handle for %d devices (expected: a list with a choice for each)"
              .formatted(devices));
    }
    return Collections.nCopies(devices, choice);
  }

  /**
   * Allocates in order of the current stream, on its device (cuMemAllocFromPoolAsync).
   *
   * @param bytes the size in bytes, >= 0; 0 gives a buffer without memory
   * @return the buffer
   * @throws IllegalArgumentException if bytes is negative
   * @throws OutOfDeviceMemoryException if the limit or the driver has no room, after everything was
   *     tried
   * @throws IllegalStateException if the pool is closed, or the stream is capturing
   */
  public DeviceBuffer allocate(long bytes) {
    return allocate(bytes, cuda.currentStream());
  }

  /**
   * Allocates in order of a stream, on its device (cuMemAllocFromPoolAsync); the size is rounded up
   * to 512 bytes.
   *
   * @param bytes the size in bytes, >= 0; 0 gives a buffer without memory
   * @param stream the stream
   * @return the buffer
   * @throws IllegalArgumentException if bytes is negative
   * @throws OutOfDeviceMemoryException if the limit or the driver has no room, after everything was
   *     tried
   * @throws IllegalStateException if the pool or the stream is closed, or the stream is capturing
   */
  @Override
  public DeviceBuffer allocate(long bytes, CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    long rounded = BlockArena.roundUp(bytes);
    try {
      return (DeviceBuffer) devicePool(stream.device()).allocate(bytes, rounded, stream.core());
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Waits for the current stream and releases to the driver what the current device's pool has
   * reserved and is not in use.
   *
   * @return the bytes released; −1 if not reported by the driver, before CUDA 11.3
   */
  public long freeAllBlocks() {
    return freeAllBlocks(cuda.currentStream());
  }

  /**
   * Waits for a stream and releases what its device's pool has reserved and is not in use
   * (cuMemPoolTrimTo).
   *
   * @param stream the stream
   * @return the bytes released; −1 if not reported by the driver, before CUDA 11.3
   * @throws CudaException if the driver reports an error
   */
  public long freeAllBlocks(CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    try {
      return devicePool(stream.device())
          .freeAllBlocks(stream.core(), stream.device().nullStream().core());
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * {@return the bytes of the pool in use, by any user of it} Blocks of closed buffers that this
   * object keeps for the next buffer count too, until {@link #freeAllBlocks()}; {@link #liveBytes}
   * is without them.
   *
   * @throws CudaException CALL_REQUIRES_NEWER_DRIVER before CUDA 11.3; so do the other two
   */
  public long usedBytes() {
    return attributes().usedMemCurrent();
  }

  /** {@return the bytes that the pool has reserved and are not in use} */
  public long freeBytes() {
    PoolAttributes now = attributes();
    return Math.max(0, now.reservedMemCurrent() - now.usedMemCurrent());
  }

  /** {@return the bytes that the pool has reserved} */
  public long totalBytes() {
    return attributes().reservedMemCurrent();
  }

  /**
   * Throws always: the number of cached blocks is not reported by the driver.
   *
   * @return never
   * @throws UnsupportedOperationException always
   */
  @SuppressWarnings("DoNotCallSuggester") // part of the face that all pools share
  public int freeBlocks() {
    throw new UnsupportedOperationException(
        "freeBlocks: the driver does not tell the number of free blocks of a pool");
  }

  /**
   * {@return the bytes allocated through this object on the current device and not freed yet, which
   * the limit counts}
   */
  public long liveBytes() {
    return devicePool(cuda.currentDevice()).liveBytes();
  }

  /** {@return the attributes of the pool of the driver} */
  public PoolAttributes attributes() {
    return attributes(cuda.currentDevice());
  }

  /**
   * {@return the attributes of the pool of the driver}
   *
   * @param device the device
   */
  public PoolAttributes attributes(CudaDevice device) {
    return new PoolAttributes(devicePool(device).pool, this);
  }

  /**
   * {@return the handle of the driver's pool of a device (CUmemoryPool)}
   *
   * @param device the device
   */
  public long handle(CudaDevice device) {
    return devicePool(device).pool.handle();
  }

  /** {@return the limit on the current device} */
  public MemoryLimit limit() {
    return limit(cuda.currentDevice());
  }

  /**
   * {@return the limit on a device}
   *
   * @param device the device
   */
  public MemoryLimit limit(CudaDevice device) {
    return devicePool(device).limit();
  }

  /**
   * Sets the limit on the current device; {@link MemoryLimit#none()}, or one of 0, does not limit.
   *
   * @param limit the limit
   */
  public void setLimit(MemoryLimit limit) {
    Objects.requireNonNull(limit, "limit");
    setLimit(cuda.currentDevice(), limit);
  }

  /**
   * Sets the limit on a device; {@link MemoryLimit#none()}, or one of 0, does not limit. What is
   * live beyond a smaller limit stays.
   *
   * @param device the device
   * @param limit the limit
   */
  public void setLimit(CudaDevice device, MemoryLimit limit) {
    Objects.requireNonNull(limit, "limit");
    devicePool(device).setLimit(limit);
  }

  /** {@return whether the pool is closed} */
  public boolean isClosed() {
    return ending.ended();
  }

  /**
   * Rejects further allocations and destroys the pools created here; those of others stay, with the
   * release threshold they had. Buffers in use stay valid. Does nothing the second time.
   */
  @Override
  public void close() {
    ending.close(this);
  }

  /** Lets the pools go; those made here are destroyed with their last memory. */
  private static void close(AtomicReferenceArray<@Nullable OrderedDevicePool> pools) {
    Failures failures = new Failures();
    for (int id = 0; id < pools.length(); id++) {
      OrderedDevicePool pool = pools.get(id);
      if (pool != null) {
        failures.run(pool.pool::close);
      }
    }
    failures.throwFirst();
  }

  @Override
  public String toString() {
    return "AsyncMemoryPool" + choices;
  }

  private OrderedDevicePool devicePool(CudaDevice device) {
    cuda.checkMine(device);
    if (ending.ended()) {
      throw new IllegalStateException(this + " is closed");
    }
    OrderedDevicePool pool = devicePools.get(device.id());
    return pool != null ? pool : open(device);
  }

  private OrderedDevicePool open(CudaDevice device) {
    OrderedDevicePool made = make(device);
    if (!devicePools.compareAndSet(device.id(), null, made) || ending.ended()) {
      made.pool.close(); // another thread made one, or closed this before it could see this one
    }
    return devicePool(device);
  }

  private OrderedDevicePool make(CudaDevice device) {
    return new OrderedDevicePool(
        cuda.engine().driverPools(),
        device.core(),
        choices.get(device.id()),
        options,
        cuda.session().firstLimit(),
        BufferKind.DEVICE);
  }
}

package io.cuvette;

import io.cuvette.internal.devicepool.CachingDevicePool;
import io.cuvette.internal.devicepool.MemoryPoolCore;
import io.cuvette.internal.devicepool.Pressure;
import io.cuvette.internal.session.Device;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.Objects;
import java.util.function.LongSupplier;

/**
 * Keeps freed device memory for reuse, one arena for each device and stream, with CuPy's rules:
 * sizes are rounded up to 512 bytes, the smallest cached block that fits is split exactly,
 * neighbours merge fully when they are freed, and a miss requests from upstream exactly the rounded
 * size. Beyond CuPy, memory used on other streams comes back only when that use is done, and a
 * large request takes the cached memory of an idle stream before the pool grows.
 *
 * <p>Methods without a device are about the current device of the thread. Thread-safe; freeing
 * never waits.
 */
public final class MemoryPool implements MemoryResource, AutoCloseable {
  private final Cuda cuda;
  private final PoolOptions options;
  private final MemoryPoolCore core;

  /**
   * A pool with {@link PoolOptions#DEFAULTS}.
   *
   * @param cuda the Cuda
   */
  public MemoryPool(Cuda cuda) {
    this(cuda, PoolOptions.DEFAULTS);
  }

  /**
   * Creates a pool. It requests no memory before the first allocation.
   *
   * @param cuda the Cuda
   * @param options the options
   */
  public MemoryPool(Cuda cuda, PoolOptions options) {
    Objects.requireNonNull(cuda, "cuda");
    Objects.requireNonNull(options, "options");
    this.cuda = cuda;
    cuda.checkOpen();
    cuda.session().leaks().drain();
    this.options = options;
    this.core = core(this, cuda, options, System::nanoTime);
  }

  /** What does the work for one object of the user. */
  static MemoryPoolCore core(Object of, Cuda cuda, PoolOptions options, LongSupplier clock) {
    CachingDevicePool.Rules rules =
        new CachingDevicePool.Rules(
            options.crossStreamBytes(), options.releaseThresholdBytes(), options.targetRatio());
    return new MemoryPoolCore(
        of,
        "MemoryPool",
        cuda.engine().streams(),
        new UpstreamChunks(options.upstream()),
        options.limit(),
        (pool, device, limit) -> new CachingDevicePool(pool, device, limit, rules, clock),
        BufferKind.DEVICE);
  }

  /** {@return the options that the pool was created with} */
  public PoolOptions options() {
    return options;
  }

  /**
   * Allocates a block in order of the current stream, on its device.
   *
   * @param bytes the size in bytes, >= 0; 0 gives a buffer without memory
   * @return the buffer
   * @throws IllegalArgumentException if bytes is negative
   * @throws OutOfDeviceMemoryException if there is not enough memory, after everything was tried
   * @throws IllegalStateException if the pool is closed
   */
  public Buffer allocate(long bytes) {
    return allocate(bytes, cuda.currentStream());
  }

  /**
   * Allocates a block in order of a stream, on its device.
   *
   * @param bytes the size in bytes, >= 0; 0 gives a buffer without memory, which no statistics
   *     count
   * @param stream the stream
   * @return the buffer
   * @throws IllegalArgumentException if bytes is negative
   * @throws OutOfDeviceMemoryException after everything was tried, with the numbers that show why
   * @throws IllegalStateException if the pool or the stream is closed, or if this is called inside
   *     a hook of this pool; to grow it, also inside its upstream or a pressure listener of it
   */
  @Override
  public Buffer allocate(long bytes, CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    try {
      return BufferKind.buffer(core.allocate(bytes, stream.core()));
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Gives cached memory of all streams back to upstream, as far as whole chunks are free. Does not
   * wait: memory that was closed while work of another stream used it stays until that is done
   * ({@link PoolStats#pendingBytes}).
   *
   * @return the bytes freed
   */
  public long freeAllBlocks() {
    return freeAllBlocks(cuda.currentDevice());
  }

  /**
   * Frees the cached memory of a device, and the events that are kept there for the next wait of a
   * stream for another.
   *
   * @param device the device
   * @return the number of bytes freed
   */
  public long freeAllBlocks(CudaDevice device) {
    return core.freeAllBlocks(CudaDevice.coreOf(device));
  }

  /**
   * Returns cached memory of one stream to upstream. That of streams that are closed belongs to no
   * stream until one takes it over; {@link #freeAllBlocks()} frees it.
   *
   * @param stream the stream whose cached memory is freed
   * @return the number of bytes freed
   */
  public long freeAllBlocks(CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    return core.freeAllBlocks(stream.core());
  }

  /**
   * Gives cached memory of the current device back to upstream, as far as whole chunks are free,
   * until no more than some bytes are held. The last chunk released may leave less than that:
   * cuMemPoolTrimTo, in contrast, keeps at least so much.
   *
   * @param keptBytes the most bytes to hold, >= 0
   * @return the bytes released
   * @throws IllegalArgumentException if keptBytes is negative
   */
  public long trim(long keptBytes) {
    return core.trim(CudaDevice.coreOf(cuda.currentDevice()), keptBytes);
  }

  /**
   * Gives cached memory of the current device back to upstream, as far as whole chunks are free in
   * which nothing was allocated or freed for some time. Frees that follow each other within
   * microseconds share a reading of the clock, so how long a chunk is free is known to within 0.1
   * ms; when frees become rare after a burst, up to 63 of them count as of the burst's end.
   *
   * @param idleFor the time, >= 0
   * @return the bytes released
   * @throws IllegalArgumentException if idleFor is negative
   */
  public long trim(Duration idleFor) {
    return core.trim(CudaDevice.coreOf(cuda.currentDevice()), idleFor);
  }

  /** {@return the bytes of the blocks in use} */
  public long usedBytes() {
    return stats().usedBytes();
  }

  /** {@return the bytes of the cached blocks} */
  public long freeBytes() {
    return stats().freeBytes();
  }

  /** {@return the bytes held from upstream, used and free} */
  public long totalBytes() {
    return stats().heldBytes();
  }

  /** {@return the number of cached blocks} */
  public int freeBlocks() {
    return stats().freeBlocks();
  }

  /** {@return all numbers of a device} */
  public PoolStats stats() {
    return stats(cuda.currentDevice());
  }

  /**
   * {@return all numbers of a device} Reclaims first what is complete or forgotten.
   *
   * @param device the device
   */
  public PoolStats stats(CudaDevice device) {
    return core.stats(CudaDevice.coreOf(device));
  }

  /**
   * Starts the peaks of a device anew from what is used and held now.
   *
   * @param device the device
   */
  public void resetPeaks(CudaDevice device) {
    core.resetPeaks(CudaDevice.coreOf(device));
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
    return core.limit(CudaDevice.coreOf(device));
  }

  /** {@return the limit on the current device in bytes, {@link Long#MAX_VALUE} for none} */
  public long limitBytes() {
    return core.limitBytes(cuda.session().state().device);
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
   * held beyond a smaller limit stays; the pool just does not grow.
   *
   * @param device the device
   * @param limit the limit
   */
  public void setLimit(CudaDevice device, MemoryLimit limit) {
    Objects.requireNonNull(limit, "limit");
    core.setLimit(CudaDevice.coreOf(device), limit);
  }

  /**
   * Adds a hook that sees all threads, until the result is closed, or the pool.
   *
   * @param hook the hook
   * @return the registration, closed to remove the hook
   * @throws IllegalStateException if the hook is there already
   */
  public Registration addHook(MemoryHook hook) {
    Objects.requireNonNull(hook, "hook");
    return core.addHook(new HookOfUser(cuda, hook), null);
  }

  /**
   * Adds a hook that sees only this thread, until the scope closes.
   *
   * @param hook the hook
   * @return the scope, closed by the same thread
   */
  public Scope useHook(MemoryHook hook) {
    Objects.requireNonNull(hook, "hook");
    Registration registration = core.addHook(new HookOfUser(cuda, hook), Thread.currentThread());
    return new Scope(cuda.current().scopes, "hook " + hook, registration::close);
  }

  /**
   * Adds a listener that is called when memory runs out, until the result is closed.
   *
   * @param listener the listener
   * @return the registration, closed to remove the listener
   */
  public Registration addPressureListener(PressureListener listener) {
    Objects.requireNonNull(listener, "listener");
    return core.addPressureListener(new Listening(cuda, listener));
  }

  /** A listener of the user, as the engine calls it. */
  record Listening(Cuda cuda, PressureListener listener) implements Pressure {
    @Override
    public long onPressure(Device device, long neededBytes) {
      return listener.onPressure(cuda.device(device.id()), neededBytes);
    }

    @Override
    public String toString() {
      return listener.toString();
    }
  }

  /**
   * Checks the pool's books, for diagnosis: on each device, the bytes that its limit counts are
   * those in its arenas and those that threads are bringing in or out at this moment. Other threads
   * wait meanwhile, so this is not for use in production.
   *
   * @throws AssertionError if memory was lost or counted twice, with the numbers
   */
  public void assertConsistent() {
    core.assertConsistent();
  }

  /** {@return whether the pool is closed} */
  public boolean isClosed() {
    return core.isClosed();
  }

  /**
   * Frees the cached memory and rejects further allocations. Buffers in use stay valid; their
   * memory goes back to upstream when they are closed. What streams use at that time goes back when
   * one of them, or the device, was waited for, or when memory is needed. Does nothing the second
   * time.
   */
  @Override
  public void close() {
    core.close(this);
  }

  /** It ends with its Cuda, and need not be closed. */
  void keep() {
    core.keep();
  }

  @Override
  public String toString() {
    return core.toString();
  }
}

package io.cuvette;

import io.cuvette.internal.caching.MemoryPoolCore;
import io.cuvette.internal.caching.Pressure;
import io.cuvette.internal.session.Device;
import java.lang.ref.Reference;
import java.util.Objects;

/**
 * Keeps freed device memory for reuse, one arena for each device and stream, with CuPy's rules:
 * sizes are rounded up to 512 bytes, the smallest cached block that fits is split exactly,
 * neighbours merge fully when they are freed, and a miss asks upstream for exactly the rounded
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

  /** A pool with {@link PoolOptions#DEFAULTS}. */
  public MemoryPool(Cuda cuda) {
    this(cuda, PoolOptions.DEFAULTS);
  }

  /** A pool. It asks for no memory before the first allocation. */
  public MemoryPool(Cuda cuda, PoolOptions options) {
    Objects.requireNonNull(cuda, "cuda");
    Objects.requireNonNull(options, "options");
    this.cuda = cuda;
    cuda.checkOpen();
    cuda.session().leaks().drain();
    this.options = options;
    this.core = core(this, cuda, options);
  }

  /** What does the work for one object of the user. */
  static MemoryPoolCore core(Object of, Cuda cuda, PoolOptions options) {
    return new MemoryPoolCore(
        of,
        cuda.engine().streams(),
        new UpstreamChunks(options.upstream()),
        options.limit(),
        options.crossStreamBytes(),
        BufferKind.DEVICE);
  }

  /** How the pool was made. */
  public PoolOptions options() {
    return options;
  }

  /** Allocates on the current stream. */
  public Buffer allocate(long bytes) {
    return allocate(bytes, cuda.currentStream());
  }

  /**
   * Allocates a block in order of a stream, on its device.
   *
   * @param bytes at least 0; 0 gives a buffer without memory, which no statistics count
   * @throws OutOfDeviceMemoryException after everything was tried, with the numbers that tell why
   * @throws IllegalStateException if the pool or the stream is closed, or if this is called inside
   *     a hook of this pool; to grow it, also inside its upstream or a pressure listener of it
   */
  @Override
  public Buffer allocate(long bytes, CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    try {
      return BufferKind.base(core.allocate(bytes, stream.core())).asBuffer();
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Gives cached memory of all streams back to upstream, as far as whole chunks are free.
   *
   * @return the bytes given back
   */
  public long freeAllBlocks() {
    return freeAllBlocks(cuda.currentDevice());
  }

  /** {@link #freeAllBlocks()} on a device. */
  public long freeAllBlocks(CudaDevice device) {
    return core.freeAllBlocks(CudaDevice.coreOf(device));
  }

  /** Gives cached memory of one stream back to upstream; 0 for a stream that has none. */
  public long freeAllBlocks(CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    return core.freeAllBlocks(stream.core());
  }

  /** Bytes of the blocks in use. */
  public long usedBytes() {
    return stats().usedBytes();
  }

  /** Bytes of the cached blocks. */
  public long freeBytes() {
    return stats().freeBytes();
  }

  /** Bytes held from upstream: used and free. */
  public long totalBytes() {
    return stats().heldBytes();
  }

  /** The number of cached blocks. */
  public int freeBlocks() {
    return stats().freeBlocks();
  }

  /** All numbers of the current device. */
  public PoolStats stats() {
    return stats(cuda.currentDevice());
  }

  /** All numbers of a device. Takes back what is done or forgotten first. */
  public PoolStats stats(CudaDevice device) {
    return core.stats(CudaDevice.coreOf(device));
  }

  /** Starts the peaks of a device anew from what is used and held now. */
  public void resetPeaks(CudaDevice device) {
    core.resetPeaks(CudaDevice.coreOf(device));
  }

  /** The limit on the current device. */
  public MemoryLimit limit() {
    return limit(cuda.currentDevice());
  }

  /** The limit on a device. */
  public MemoryLimit limit(CudaDevice device) {
    return core.limit(CudaDevice.coreOf(device));
  }

  /** The limit on the current device in bytes, {@link Long#MAX_VALUE} for none. */
  public long limitBytes() {
    return core.limitBytes(cuda.session().state().device);
  }

  /** Sets the limit on the current device; {@link MemoryLimit#none()}, or one of 0, is no limit. */
  public void setLimit(MemoryLimit limit) {
    Objects.requireNonNull(limit, "limit");
    setLimit(cuda.currentDevice(), limit);
  }

  /**
   * Sets the limit on a device; {@link MemoryLimit#none()}, or one of 0, is no limit. What is held
   * beyond a smaller limit stays; the pool just does not grow.
   */
  public void setLimit(CudaDevice device, MemoryLimit limit) {
    Objects.requireNonNull(limit, "limit");
    core.setLimit(CudaDevice.coreOf(device), limit);
  }

  /**
   * Adds a hook that sees all threads, until the result is closed, or the pool.
   *
   * @throws IllegalStateException if the hook is there already
   */
  public Registration addHook(MemoryHook hook) {
    Objects.requireNonNull(hook, "hook");
    return core.addHook(new HookOfUser(cuda, hook), null);
  }

  /** Adds a hook that sees only this thread, until the scope closes. */
  public Scope useHook(MemoryHook hook) {
    Objects.requireNonNull(hook, "hook");
    Registration registration = core.addHook(new HookOfUser(cuda, hook), Thread.currentThread());
    return new Scope(cuda.current(), "hook " + hook, registration::close);
  }

  /** Adds a listener that is asked when memory runs out, until the result is closed. */
  public Registration addPressureListener(PressureListener listener) {
    Objects.requireNonNull(listener, "listener");
    return core.addPressureListener(new Listening(cuda, listener));
  }

  /** A listener of the user, as the engine asks it. */
  private record Listening(Cuda cuda, PressureListener listener) implements Pressure {
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

  /** Whether the pool was closed. */
  public boolean isClosed() {
    return core.isClosed();
  }

  /**
   * Gives the cached memory back and lets nobody allocate any more. Buffers in use stay valid;
   * their memory goes back to upstream when they are closed. What streams use at that time goes
   * back when one of them, or the device, was waited for, or when memory is needed. Does nothing
   * the second time.
   */
  @Override
  public void close() {
    core.close();
  }

  /** It ends with its Cuda: nobody has to close it. */
  void keep() {
    core.keep();
  }

  @Override
  public String toString() {
    return core.toString();
  }
}

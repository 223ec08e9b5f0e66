package io.cuvette;

import io.cuvette.internal.Checks;

/**
 * Memory from one pool of the driver, with the face of cuda.core's memory resources. A resource
 * that made its pool destroys it when closed; one that uses a pool of the driver just lets go of
 * it. Thread-safe.
 */
public abstract sealed class DriverPoolResource implements MemoryResource, AutoCloseable
    permits DeviceMemoryResource, ManagedMemoryResource, PinnedMemoryResource {
  private final DriverPool pool;
  private final StreamOrderedMemory memory = new StreamOrderedMemory();
  private final StreamOrderedAllocator allocator;
  private final PoolAttributes attributes;
  private final Runnable end = this::destroy;

  DriverPoolResource(DriverPool pool, StreamOrderedAllocator.Kind kind) {
    this.pool = pool;
    this.allocator = new StreamOrderedAllocator(pool, memory, kind);
    this.attributes = new PoolAttributes(pool);
    pool.cuda().children().add(end);
  }

  /**
   * Allocates in order of a stream (cuMemAllocFromPoolAsync).
   *
   * @param bytes at least 0; 0 gives a buffer without memory
   * @throws OutOfDeviceMemoryException if the pool has no room, after everything was tried
   * @throws IllegalStateException if the resource or the stream is closed, or the stream is
   *     capturing
   */
  @Override
  public abstract Buffer allocate(long bytes, CudaStream stream);

  /** Allocates in order of this thread's current stream. */
  public abstract Buffer allocate(long bytes);

  /** Gives a buffer of this resource back in order of its stream; the same as closing it. */
  public final void deallocate(Buffer buffer) {
    checkMine(buffer);
    buffer.close();
  }

  /** Gives a buffer of this resource back behind the work queued on another stream so far. */
  public final void deallocate(Buffer buffer, CudaStream stream) {
    checkMine(buffer);
    buffer.recordUse(stream);
    buffer.close();
  }

  /** What the pool says of itself, and its settings; live. */
  public final PoolAttributes attributes() {
    return attributes;
  }

  /** The handle of the pool (CUmemoryPool). */
  public final long handle() {
    return pool.handle();
  }

  /** Whether closing destroys the pool; false after that. */
  public final boolean isHandleOwned() {
    return pool.isOwned();
  }

  /** Whether devices can access the memory. */
  public abstract boolean isDeviceAccessible();

  /** Whether the host can access the memory. */
  public abstract boolean isHostAccessible();

  /** The number of the device the memory belongs to; −1 if it belongs to none. */
  public abstract int deviceId();

  /**
   * Gives what nobody uses back to the driver's side of the process, down to a size
   * (cuMemPoolTrimTo).
   *
   * @param bytesToKeep at least 0
   */
  public final void trimTo(long bytesToKeep) {
    Checks.notNegative("bytesToKeep", bytesToKeep);
    memory.settle();
    pool.driver().memPoolTrimTo(pool.handle(), bytesToKeep);
  }

  /** Whether the resource was closed. */
  public final boolean isClosed() {
    return pool.isClosed();
  }

  /**
   * Lets nobody allocate any more and destroys the pool if it was made here. Buffers in use stay
   * valid. Does nothing the second time.
   */
  @Override
  public final void close() {
    if (isClosed()) {
      return;
    }
    beforeDestroy();
    pool.close();
    if (memory.liveBytes() == 0) {
      pool.cuda().children().remove(end);
    }
  }

  /** What must be undone on a pool that is about to be destroyed. */
  void beforeDestroy() {}

  final DriverPool pool() {
    return pool;
  }

  final BufferBase take(long bytes, CudaStream stream) {
    return allocator.allocate(bytes, bytes, stream);
  }

  private void checkMine(Buffer buffer) {
    BlockLifetime lifetime = BufferBase.base(buffer).lifetime();
    if (!(lifetime instanceof StreamOrderedLifetime block && block.isOf(memory))) {
      throw new IllegalArgumentException("%s was not allocated by %s".formatted(buffer, this));
    }
  }

  private void destroy() {
    Failures failures = new Failures();
    failures.run(memory::destroy);
    failures.run(pool::close);
    failures.throwFirst();
  }
}

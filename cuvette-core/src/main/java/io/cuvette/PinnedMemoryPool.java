package io.cuvette;

import io.cuvette.internal.pinnedpool.PinnedPoolCore;
import java.lang.ref.Reference;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Keeps freed page-locked host memory for reuse, in size classes that waste at most 12.5 % (or part
 * of 512 bytes). Where threads share the pool, a block may be up to three classes larger, if its
 * thread has none of the right one: half as large again, or 1.5 KiB below 4 KiB. A block that
 * streams copy from or to comes back only when those copies are done. Thread-safe; freeing never
 * waits.
 */
public final class PinnedMemoryPool implements PinnedAllocator, AutoCloseable {
  private final Cuda cuda;
  private final PinnedPoolCore core;

  /**
   * A pool with {@link PinnedPoolOptions#DEFAULTS}.
   *
   * @param cuda the Cuda
   */
  public PinnedMemoryPool(Cuda cuda) {
    this(cuda, PinnedPoolOptions.DEFAULTS);
  }

  /**
   * Creates a pool. It requests no memory before the first allocation.
   *
   * @param cuda the Cuda
   * @param options the options
   */
  public PinnedMemoryPool(Cuda cuda, PinnedPoolOptions options) {
    Objects.requireNonNull(cuda, "cuda");
    Objects.requireNonNull(options, "options");
    cuda.checkOpen();
    this.cuda = cuda;
    cuda.session().leaks().drain();
    PinnedAllocator given = options.upstream();
    PinnedAllocator upstream = given != null ? given : cuda.directPinned();
    this.core =
        new PinnedPoolCore(
            this,
            cuda.engine().streams(),
            new PinnedChunks(upstream, () -> upstream),
            options.limit(),
            BufferKind.PINNED);
  }

  /**
   * Allocates a block.
   *
   * @param bytes the size in bytes, >= 0; 0 gives a buffer without memory, which no statistics
   *     count
   * @return the buffer
   * @throws IllegalArgumentException if bytes is negative
   * @throws OutOfPinnedMemoryException if upstream or the limit has no room, after cached blocks
   *     were released, copies waited for and forgotten buffers reclaimed
   */
  @Override
  public PinnedBuffer allocate(long bytes) {
    try {
      return (PinnedBuffer) core.allocate(bytes, cuda.currentDevice().nullStream().core());
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /** The same if that releases nothing and waits for nothing; null if there is no memory now. */
  @Nullable PinnedBuffer tryAllocate(long bytes) {
    try {
      return (PinnedBuffer) core.tryAllocate(bytes, cuda.currentDevice().nullStream().core());
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Returns all cached memory to upstream.
   *
   * @return the number of bytes freed
   */
  public long freeAllBlocks() {
    return core.freeAllBlocks();
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

  /** {@return all numbers} Reclaims first what is complete or forgotten. */
  public PinnedPoolStats stats() {
    return core.stats();
  }

  /** {@return the limit} */
  public MemoryLimit limit() {
    return core.limit();
  }

  /**
   * Sets the limit, in bytes; {@link MemoryLimit#none()}, or one of 0, does not limit. What is held
   * beyond a smaller limit stays.
   *
   * @param next the limit
   */
  public void setLimit(MemoryLimit next) {
    Objects.requireNonNull(next, "next");
    PinnedPoolOptions.checkLimit(next);
    core.setLimit(next);
  }

  /**
   * Checks the pool's books, for diagnosis: the bytes that its limit counts are those of the blocks
   * in use, of the cached ones, and of those that threads are bringing in or out at this moment.
   * Other threads wait meanwhile, so this is not for use in production.
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

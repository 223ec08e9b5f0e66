package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.Checks;
import io.cuvette.pool.SizeClasses;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Keeps freed page-locked host memory for reuse, in size classes that waste at most 12.5 % (or part
 * of 512 bytes). A block that streams copy from or to comes back only when those copies are done.
 * Thread-safe; freeing never waits.
 */
public final class PinnedMemoryPool implements PinnedAllocator, AutoCloseable {
  private final Cuda cuda;
  private final PinnedAllocator upstream;
  private final PinnedStore store;
  private final PendingFrees<PinnedBlock> pending;
  private final Runnable end = this::destroy;
  private volatile MemoryLimit limit;
  private volatile boolean closed;

  /** A pool with {@link PinnedPoolOptions#DEFAULTS}. */
  public PinnedMemoryPool(Cuda cuda) {
    this(cuda, PinnedPoolOptions.DEFAULTS);
  }

  /** A pool. It asks for no memory before the first allocation. */
  public PinnedMemoryPool(Cuda cuda, PinnedPoolOptions options) {
    Objects.requireNonNull(cuda, "cuda");
    Objects.requireNonNull(options, "options");
    this.cuda = cuda;
    cuda.checkOpen();
    PinnedAllocator given = options.upstream();
    this.upstream = given != null ? given : cuda.directPinned();
    this.limit = options.limit();
    this.store = new PinnedStore(limit.bytesOf(0));
    this.pending = new PendingFrees<>(this::give);
    cuda.owned().children().addPool(end);
    cuda.leaks().opened(this, this::toString);
  }

  /**
   * Allocates a block.
   *
   * @param bytes at least 0; 0 gives a buffer without memory, which no statistics count
   * @throws OutOfPinnedMemoryException if upstream or the limit has no room, after cached blocks
   *     were released, copies waited for and forgotten buffers reclaimed
   */
  @Override
  public PinnedBuffer allocate(long bytes) {
    Checks.notNegative("bytes", bytes);
    cuda.checkOpen();
    if (closed) {
      throw isClosedNow();
    }
    if (bytes == 0) {
      return DirectMemory.empty(
          new PinnedBuffer(MemorySegment.NULL, cuda.currentDevice().nullStream()));
    }
    int sizeClass = SizeClasses.classOf(bytes);
    PinnedBuffer chunk = store.takeCached(sizeClass);
    return lend(chunk != null ? chunk : find(bytes, sizeClass), bytes, sizeClass);
  }

  /** Gives all cached memory back to upstream; the bytes given back. */
  public long freeAllBlocks() {
    settle();
    long released = 0;
    Failures failures = new Failures();
    for (PinnedStore.Cached block : store.removeCached()) {
      released += block.blockBytes();
      store.unreserve(block.blockBytes());
      failures.run(block.chunk()::close);
    }
    failures.throwFirst();
    return released;
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

  /** All numbers. Takes back first what is done or forgotten. */
  public PinnedPoolStats stats() {
    settle();
    return store.stats(pending);
  }

  /** The limit. */
  public MemoryLimit limit() {
    return limit;
  }

  /**
   * Sets the limit, in bytes; {@link MemoryLimit#none()}, or one of 0, is no limit. What is held
   * beyond a smaller limit stays.
   */
  public void setLimit(MemoryLimit next) {
    Objects.requireNonNull(next, "next");
    PinnedPoolOptions.checkLimit(next);
    store.setLimit(next.bytesOf(0));
    limit = next;
  }

  /** Whether the pool was closed. */
  public boolean isClosed() {
    return closed;
  }

  /**
   * Gives the cached memory back and lets nobody allocate any more. Buffers in use stay valid;
   * their memory goes back to upstream when they are closed. Does nothing the second time.
   */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      cuda.leaks().closed(this);
      freeAllBlocks();
      if (totalBytes() == 0) {
        cuda.owned().children().remove(end);
      }
    }
  }

  @Override
  public String toString() {
    return "PinnedMemoryPool";
  }

  Cuda cuda() {
    return cuda;
  }

  void free(PinnedBlock block) {
    if (block.isUsedAtHomeAlone()) {
      give(block);
    } else {
      pending.free(block, null);
    }
  }

  private void give(PinnedBlock block) {
    store.give(block);
    if (closed) {
      freeAllBlocks();
    }
  }

  private void settle() {
    cuda.leaks().drain();
    pending.poll();
  }

  private PinnedBuffer lend(PinnedBuffer chunk, long bytes, int sizeClass) {
    PinnedBuffer buffer = chunk.block(0, bytes, cuda.currentDevice().nullStream());
    PinnedBlock block = new PinnedBlock(buffer, this, chunk, sizeClass);
    buffer.own(block);
    if (!store.lend(block)) {
      chunk.close();
      throw isClosedNow();
    }
    return buffer;
  }

  /** One step after the other, searching again after each. */
  private PinnedBuffer find(long bytes, int sizeClass) {
    settle();
    PinnedBuffer found = search(sizeClass);
    if (found == null) {
      freeAllBlocks();
      found = search(sizeClass);
    }
    if (found == null) {
      pending.await();
      freeAllBlocks();
      found = search(sizeClass);
    }
    if (found == null) {
      found =
          Reclaim.search(
              cuda.leaks(),
              () -> false,
              () -> {
                pending.await();
                freeAllBlocks();
                return search(sizeClass);
              });
    }
    if (found == null) {
      throw outOfMemory(bytes);
    }
    return found;
  }

  private @Nullable PinnedBuffer search(int sizeClass) {
    PinnedBuffer cached = store.takeCached(sizeClass);
    return cached != null ? cached : grow(PinnedStore.blockBytes(sizeClass));
  }

  private @Nullable PinnedBuffer grow(long blockBytes) {
    if (!store.reserve(blockBytes)) {
      return null;
    }
    PinnedBuffer chunk = null;
    try {
      if (closed) {
        throw isClosedNow(); // whoever closed it may not have seen the bytes just reserved
      }
      chunk = ask(blockBytes);
      store.grown();
      return chunk;
    } catch (CudaException e) {
      if (e.status() != CudaStatus.OUT_OF_MEMORY) {
        throw e;
      }
      return null;
    } finally {
      if (chunk == null) {
        store.unreserve(blockBytes);
      }
    }
  }

  private IllegalStateException isClosedNow() {
    return new IllegalStateException(this + " is closed");
  }

  private PinnedBuffer ask(long blockBytes) {
    ThreadState state = cuda.state();
    state.enter(this);
    PinnedBuffer given;
    try {
      given = upstream.allocate(blockBytes);
    } finally {
      state.leave();
    }
    Upstream.checked("the upstream allocator", given, blockBytes, null);
    return given;
  }

  private OutOfPinnedMemoryException outOfMemory(long bytes) {
    store.failed();
    PinnedPoolStats now = store.stats(pending);
    return new OutOfPinnedMemoryException(
        bytes,
        "allocatePinned(bytes=%d)".formatted(bytes),
        "requested=%d of page-locked memory (held=%d, used=%d, free=%d in %d blocks, limit=%s)"
            .formatted(
                bytes,
                now.heldBytes(),
                now.usedBytes(),
                now.freeBytes(),
                now.freeBlocks(),
                now.limitBytes() == Long.MAX_VALUE ? "none" : now.limitBytes()));
  }

  private void destroy() {
    closed = true;
    pending.clear();
    Failures failures = new Failures();
    for (PinnedBlock block : store.removeLive()) {
      store.unreserve(block.blockBytes());
      failures.run(block::abandon);
      failures.run(block.chunk::close);
    }
    for (PinnedStore.Cached block : store.removeCached()) {
      store.unreserve(block.blockBytes());
      failures.run(block.chunk()::close);
    }
    failures.throwFirst();
  }
}

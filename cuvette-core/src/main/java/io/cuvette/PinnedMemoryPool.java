package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.Checks;
import io.cuvette.pool.SizeClasses;
import java.lang.foreign.MemorySegment;
import java.util.List;
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
  private final PendingFrees<PinnedBlock> pending = new PendingFrees<>(this::give);
  private final Turns turns = new Turns();
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
    cuda.owned().add(this, end);
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
    checkOpen();
    if (bytes == 0) {
      return DirectMemory.empty(
          new PinnedBuffer(MemorySegment.NULL, cuda.currentDevice().nullStream()));
    }
    int sizeClass = SizeClasses.classOf(bytes);
    PinnedChunk chunk = store.take(sizeClass);
    return lend(chunk != null ? chunk : find(bytes, sizeClass), bytes);
  }

  /** Gives all cached memory back to upstream; the bytes given back. */
  public long freeAllBlocks() {
    cuda.owned().settleClosed();
    return release();
  }

  long release() {
    settle();
    long released = 0;
    Failures failures = new Failures();
    for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
      released += release(sizeClass, failures);
    }
    failures.throwFirst();
    return released;
  }

  private long release(int sizeClass, Failures failures) {
    long released = 0;
    PinnedChunk chunk = store.remove(sizeClass);
    while (chunk != null) {
      try {
        store.giveUp(chunk);
        released += chunk.bytes();
      } catch (RuntimeException | Error e) {
        failures.add(e);
      }
      chunk = store.remove(sizeClass);
    }
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
    store.held().setLimit(next.bytesOf(0));
    limit = next;
  }

  /**
   * Checks the pool's books, for diagnosis: the bytes that its limit counts are those of the blocks
   * in use, of the cached ones, and of those that threads are bringing in or out at this moment.
   * Other threads wait meanwhile, so this is not for use in production.
   *
   * @throws AssertionError if memory was lost or counted twice, with the numbers
   */
  public void assertConsistent() {
    store.assertConsistent();
  }

  /** Whether the pool was closed. */
  public boolean isClosed() {
    return closed;
  }

  /**
   * Gives the cached memory back and lets nobody allocate any more. Buffers in use stay valid;
   * their memory goes back to upstream when they are closed. What streams use at that time goes
   * back when one of them, or the device, was waited for, or when memory is needed. Does nothing
   * the second time.
   */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    cuda.leaks().closed(this);
    try {
      release();
    } finally {
      forgetIfEmpty();
    }
  }

  /** Takes back what streams no longer use, if nobody else does. */
  void settleIfClosed() {
    if (closed) {
      pending.poll();
    }
  }

  /** The same once the streams are done with it. */
  void awaitIfClosed() {
    if (closed) {
      pending.await();
    }
  }

  /** A closed pool that holds nothing has nothing left to end. */
  private void forgetIfEmpty() {
    if (store.held().held() == 0) {
      cuda.owned().remove(this, end);
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

  PendingFrees<PinnedBlock> pending() {
    return pending;
  }

  Turns turns() {
    return turns;
  }

  private void give(PinnedBlock block) {
    store.give(block);
    releaseIfClosed(block.chunk);
  }

  /** What comes back to a closed pool goes on to upstream. */
  private void releaseIfClosed(PinnedChunk chunk) {
    if (closed) {
      Failures failures = new Failures();
      release(chunk.sizeClass, failures);
      forgetIfEmpty();
      failures.throwFirst();
    }
  }

  private void settle() {
    cuda.leaks().drain();
    pending.poll();
  }

  /** Lends a chunk in hand; it is cached again if it cannot be. */
  private PinnedBuffer lend(PinnedChunk chunk, long bytes) {
    PinnedBlock block = null;
    boolean lent = false;
    try {
      PinnedBuffer buffer = chunk.memory.block(0, bytes, cuda.currentDevice().nullStream());
      block = new PinnedBlock(buffer, this, chunk);
      buffer.own(block);
      lent = store.lend(block);
      if (!lent) {
        throw isClosedNow();
      }
      return buffer;
    } finally {
      if (!lent) {
        if (block != null) {
          block.clear();
        }
        store.putBack(chunk);
        releaseIfClosed(chunk);
      }
    }
  }

  /** One step after the other, searching again after each. */
  private PinnedChunk find(long bytes, int sizeClass) {
    Refusals refusals = new Refusals();
    PinnedChunk found = search(sizeClass, refusals);
    return found != null
        ? found
        : new PinnedRecovery(this, store, bytes, sizeClass, refusals).run();
  }

  /** What can be had without releasing anything or waiting, in hand. */
  @Nullable PinnedChunk search(int sizeClass, Refusals refusals) {
    settle();
    PinnedChunk cached = store.take(sizeClass);
    return cached != null ? cached : grow(sizeClass, refusals);
  }

  /** More memory from upstream; null if the limit or upstream says no. */
  private @Nullable PinnedChunk grow(int sizeClass, Refusals refusals) {
    long blockBytes = PinnedStore.blockBytes(sizeClass);
    if (!refusals.isWorthAsking() || !store.held().reserve(blockBytes)) {
      return null;
    }
    PinnedChunk chunk = null;
    try {
      checkOpen(); // again: whoever closed it may not have seen the bytes just reserved
      chunk = adopt(ask(blockBytes), sizeClass);
      return chunk;
    } catch (CudaException e) {
      if (e.status() != CudaStatus.OUT_OF_MEMORY) {
        throw e;
      }
      refusals.add(e);
      return null;
    } finally {
      if (chunk == null) {
        store.held().unreserve(blockBytes);
      }
    }
  }

  /** What cannot be adopted goes back, but for memory that the pool has already. */
  private PinnedChunk adopt(PinnedBuffer memory, int sizeClass) {
    PinnedChunk chunk;
    try {
      chunk = store.add(memory, sizeClass);
    } catch (OutOfMemoryError e) {
      Failures.closeAfter(e, memory);
      throw e;
    }
    if (chunk == null) {
      memory.close();
      throw isClosedNow();
    }
    return chunk;
  }

  private void checkOpen() {
    if (closed) {
      throw isClosedNow();
    }
  }

  private IllegalStateException isClosedNow() {
    return new IllegalStateException(this + " is closed");
  }

  private PinnedBuffer ask(long blockBytes) {
    ThreadState state = cuda.state();
    state.enter(this, upstream);
    PinnedBuffer given;
    try {
      given = upstream.allocate(blockBytes);
    } finally {
      state.leave();
    }
    Upstream.checked("the upstream allocator", given, blockBytes, cuda, null);
    return given;
  }

  OutOfPinnedMemoryException outOfMemory(long bytes, Refusals refusals) {
    store.failed();
    PinnedPoolStats now = store.stats(pending);
    return refusals.explain(
        new OutOfPinnedMemoryException(
            bytes,
            "allocatePinned(bytes=%d)".formatted(bytes),
            "requested=%d of page-locked memory (held=%d, used=%d, free=%d in %d blocks, limit=%s)"
                .formatted(
                    bytes,
                    now.heldBytes(),
                    now.usedBytes(),
                    now.freeBytes(),
                    now.freeBlocks(),
                    now.limitBytes() == Long.MAX_VALUE ? "none" : now.limitBytes())));
  }

  private void destroy() {
    closed = true;
    Failures failures = new Failures();
    List<PinnedChunk> chunks = store.end();
    pending.clear();
    for (PinnedChunk chunk : chunks) {
      PinnedBlock block = chunk.lentTo;
      if (block != null) {
        failures.run(block::abandon);
      }
      failures.run(chunk.memory::close);
    }
    failures.throwFirst();
  }
}

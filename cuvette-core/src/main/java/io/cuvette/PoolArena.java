package io.cuvette;

import io.cuvette.pool.BlockArena;
import io.cuvette.pool.SpinLock;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The blocks that one pool keeps for one stream. Taking and giving are a short spin lock and a few
 * array accesses; a thread that finds the lock taken when it frees leaves its block on a stack with
 * one compare-and-set. No driver call is made under the lock. Thread-safe.
 */
final class PoolArena {
  private static final VarHandle REMOTE;

  static {
    try {
      REMOTE = MethodHandles.lookup().findVarHandle(PoolArena.class, "remote", PooledBlock.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  final MemoryPool pool;
  final DevicePool devicePool;
  final StreamState stream;

  private final SpinLock lock = new SpinLock();
  private final BlockArena blocks = new BlockArena();

  /** The blocks in use by index; this is what keeps them reachable for the leak tracker. */
  private @Nullable PooledBlock[] live = new PooledBlock[64];

  private volatile @Nullable PooledBlock remote;
  private long requestedBytes;
  private long peakUsedBytes;
  private long allocations;

  PoolArena(MemoryPool pool, DevicePool devicePool, StreamState stream) {
    this.pool = pool;
    this.devicePool = devicePool;
    this.stream = stream;
  }

  /** A cached block; null if none fits. */
  @Nullable BufferBase take(long bytes, long rounded, CudaStream of) {
    lock.lock();
    try {
      drainRemote();
      int block = blocks.take(rounded);
      return block == BlockArena.NONE ? null : lend(block, bytes, of);
    } finally {
      lock.unlock();
    }
  }

  /** Adds a chunk and gives the first part of it. */
  BufferBase adopt(
      long address, int chunk, long chunkBytes, long bytes, long rounded, CudaStream of) {
    lock.lock();
    try {
      int block = blocks.adopt(address, chunkBytes, chunk);
      if (chunkBytes > rounded) {
        blocks.give(block);
        block = blocks.take(rounded);
      }
      return lend(block, bytes, of);
    } finally {
      lock.unlock();
    }
  }

  /** Removes a free whole chunk of at least {@code rounded} bytes; null if there is none. */
  @Nullable FreeChunk removeWhole(long rounded) {
    lock.lock();
    try {
      drainRemote();
      return remove(blocks.takeWhole(rounded));
    } finally {
      lock.unlock();
    }
  }

  /** Removes any free whole chunk; null if there is none. */
  @Nullable FreeChunk removeAnyWhole() {
    lock.lock();
    try {
      drainRemote();
      return remove(blocks.takeAnyWhole());
    } finally {
      lock.unlock();
    }
  }

  /** A chunk without an arena. */
  record FreeChunk(long address, long bytes, int chunk) {}

  private @Nullable FreeChunk remove(int block) {
    if (block == BlockArena.NONE) {
      return null;
    }
    long address = blocks.address(block);
    long bytes = blocks.bytes(block);
    return new FreeChunk(address, bytes, blocks.forget(block));
  }

  /** Puts a removed chunk back, free. */
  void restore(FreeChunk chunk) {
    lock.lock();
    try {
      blocks.give(blocks.adopt(chunk.address, chunk.bytes, chunk.chunk));
    } finally {
      lock.unlock();
    }
  }

  /** Takes a block back whose buffer was closed; never waits. */
  void free(PooledBlock block) {
    MemoryHooks hooks = pool.hooks();
    if (hooks != null) {
      hooks.free(block, () -> freeOrdered(block));
    } else {
      freeOrdered(block);
    }
  }

  private void freeOrdered(PooledBlock block) {
    if (block.uses() == null && block.home == stream) {
      giveOrLeave(block);
    } else {
      devicePool.pending().free(block, stream);
    }
  }

  void giveOrLeave(PooledBlock block) {
    if (lock.tryLock()) {
      try {
        drainRemote();
        give(block);
      } finally {
        lock.unlock();
      }
    } else {
      leave(block);
    }
    if (pool.isClosed()) {
      devicePool.release(this);
      pool.forgetIfEmpty();
    }
  }

  private void leave(PooledBlock block) {
    PooledBlock head;
    do {
      head = remote;
      block.next = head;
    } while (!REMOTE.compareAndSet(this, head, block));
  }

  private void drainRemote() {
    if (remote == null) {
      return;
    }
    PooledBlock block = (PooledBlock) REMOTE.getAndSet(this, null);
    while (block != null) {
      PooledBlock next = block.next;
      block.next = null;
      give(block);
      block = next;
    }
  }

  private void give(PooledBlock block) {
    live[block.block] = null;
    requestedBytes -= block.requestedBytes;
    blocks.give(block.block);
  }

  private BufferBase lend(int block, long bytes, CudaStream of) {
    BufferBase chunk = devicePool.chunks().get(blocks.chunk(block));
    BufferBase buffer = chunk.block(blocks.offset(block), bytes, of);
    LeakTracker leaks = stream.cuda.leaks();
    PooledBlock lifetime =
        new PooledBlock(
            buffer,
            leaks.queue,
            leaks.remembersSites() ? leaks.site() : null,
            this,
            block,
            blocks.bytes(block));
    buffer.own(lifetime);
    if (block >= live.length) {
      live = Arrays.copyOf(live, Math.max(block + 1, live.length * 2));
    }
    live[block] = lifetime;
    allocations++;
    requestedBytes += bytes;
    peakUsedBytes = Math.max(peakUsedBytes, blocks.usedBytes());
    return buffer;
  }

  /** The stream is gone: its cached memory becomes everybody's. */
  void retire() {
    devicePool.orphan(this);
  }

  /** Ends all buffers without giving anything back; the caller frees the chunks. */
  void endAll() {
    lock.lock();
    try {
      for (PooledBlock block : live) {
        if (block != null && block.end()) {
          block.clear();
        }
      }
      Arrays.fill(live, null);
    } finally {
      lock.unlock();
    }
  }

  boolean isEmpty() {
    lock.lock();
    try {
      drainRemote();
      return blocks.chunks() == 0;
    } finally {
      lock.unlock();
    }
  }

  /** Whether it is worth asking the stream: there is something free. */
  boolean hasFree(long rounded) {
    lock.lock();
    try {
      drainRemote();
      return blocks.largestFreeBytes() >= rounded;
    } finally {
      lock.unlock();
    }
  }

  void count(PoolCensus census) {
    lock.lock();
    try {
      drainRemote();
      census.add(blocks, requestedBytes, peakUsedBytes, allocations);
    } finally {
      lock.unlock();
    }
  }

  void resetPeak() {
    lock.lock();
    try {
      peakUsedBytes = blocks.usedBytes();
    } finally {
      lock.unlock();
    }
  }

  @Override
  public String toString() {
    return "arena of " + stream;
  }
}

package io.cuvette;

import io.cuvette.pool.BlockArena;
import io.cuvette.pool.SpinLock;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
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

  /** In the order in which the arenas of the pool were made. */
  final long number;

  private final SpinLock lock = new SpinLock();
  private final BlockArena blocks = new BlockArena();

  /** The blocks in use by index; this is what keeps them reachable for the leak tracker. */
  private @Nullable PooledBlock[] live = new PooledBlock[64];

  private volatile @Nullable PooledBlock remote;

  /** Made when threads first met here. */
  private volatile @Nullable FrontCache front;

  private long requestedBytes;
  private long peakUsedBytes;
  private long allocations;

  PoolArena(MemoryPool pool, DevicePool devicePool, StreamState stream, long number) {
    this.pool = pool;
    this.devicePool = devicePool;
    this.stream = stream;
    this.number = number;
  }

  /** A cached block; null if none fits. */
  @Nullable BufferBase take(long bytes, long rounded, CudaStream of) {
    FrontCache cache = front;
    if (cache == null || !FrontCache.keeps(rounded)) {
      BufferBase found = takeHere(bytes, rounded, of, null);
      return found == null && recall() ? takeHere(bytes, rounded, of, null) : found;
    }
    FrontCache.Stripe stripe = cache.mine();
    PooledBlock ready = stripe.take(rounded);
    if (ready != null) {
      return lend(
          ready.block,
          ready.chunk,
          ready.address - ready.chunk.address(),
          rounded,
          bytes,
          of,
          stripe);
    }
    BufferBase found = takeHere(bytes, rounded, of, stripe);
    return found == null && recall() ? takeHere(bytes, rounded, of, stripe) : found;
  }

  private @Nullable BufferBase takeHere(
      long bytes, long rounded, CudaStream of, FrontCache.@Nullable Stripe stripe) {
    if (!lock.tryLock()) {
      lock.lock();
      if (front == null) {
        front = new FrontCache();
      }
    }
    try {
      drainRemote();
      int block = blocks.take(rounded);
      return block == BlockArena.NONE ? null : lend(block, bytes, of, stripe);
    } finally {
      lock.unlock();
    }
  }

  /** Brings back what the front cache has; false if that is nothing. */
  private boolean recall() {
    FrontCache cache = front;
    List<PooledBlock> cached = cache == null ? List.of() : cache.removeCached();
    if (cached.isEmpty()) {
      return false;
    }
    lock.lock();
    try {
      cached.forEach(block -> blocks.give(block.block));
    } finally {
      lock.unlock();
    }
    return true;
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
      return lend(block, bytes, of, null);
    } finally {
      lock.unlock();
    }
  }

  /**
   * Removes a free whole chunk of at least {@code rounded} bytes; null if there is none, or if a
   * part of another chunk fits better.
   */
  @Nullable FreeChunk removeWhole(long rounded) {
    recall();
    lock.lock();
    try {
      drainRemote();
      long best = blocks.bestFitBytes(rounded);
      int whole = blocks.takeWhole(rounded);
      if (whole != BlockArena.NONE && blocks.bytes(whole) > best) {
        blocks.give(whole);
        return null;
      }
      return remove(whole);
    } finally {
      lock.unlock();
    }
  }

  /** Removes any free whole chunk; null if there is none. */
  @Nullable FreeChunk removeAnyWhole() {
    recall();
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
    FrontCache.Stripe stripe = block.stripe;
    if (stripe == null || !stripe.give(block)) {
      giveHere(block);
    }
    if (pool.isClosed()) {
      devicePool.release(this);
      pool.forgetIfEmpty();
    }
  }

  private void giveHere(PooledBlock block) {
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
    if (block.stripe == null) {
      live[block.block] = null;
      requestedBytes -= block.requestedBytes;
    }
    blocks.give(block.block);
  }

  private BufferBase lend(
      int block, long bytes, CudaStream of, FrontCache.@Nullable Stripe stripe) {
    BufferBase chunk = devicePool.chunks().get(blocks.chunk(block));
    BufferBase buffer =
        lend(block, chunk, blocks.offset(block), blocks.bytes(block), bytes, of, stripe);
    if (stripe == null) {
      if (block >= live.length) {
        live = Arrays.copyOf(live, Math.max(block + 1, live.length * 2));
      }
      live[block] = (PooledBlock) buffer.lifetime();
      allocations++;
      requestedBytes += bytes;
    }
    peakUsedBytes = Math.max(peakUsedBytes, blocks.usedBytes());
    return buffer;
  }

  private BufferBase lend(
      int block,
      BufferBase chunk,
      long offset,
      long blockBytes,
      long bytes,
      CudaStream of,
      FrontCache.@Nullable Stripe stripe) {
    BufferBase buffer = chunk.block(offset, bytes, of);
    LeakTracker leaks = stream.cuda.leaks();
    Throwable site = leaks.remembersSites() ? leaks.site() : null;
    PooledBlock lifetime =
        new PooledBlock(buffer, leaks.queue, site, this, block, chunk, blockBytes);
    buffer.own(lifetime);
    if (stripe != null) {
      stripe.lend(lifetime);
    }
    return buffer;
  }

  /** The stream is gone: its cached memory becomes everybody's. */
  void retire() {
    devicePool.orphan(this);
  }

  /** Ends all buffers without giving anything back; the caller frees the chunks. */
  void endAll(Failures failures) {
    FrontCache cache = front;
    List<PooledBlock> all = new ArrayList<>(cache == null ? List.of() : cache.endAll());
    lock.lock();
    try {
      for (PooledBlock block : live) {
        if (block != null) {
          all.add(block);
        }
      }
      Arrays.fill(live, null);
    } finally {
      lock.unlock();
    }
    all.forEach(block -> failures.run(block::abandon));
  }

  boolean isEmpty() {
    recall();
    lock.lock();
    try {
      drainRemote();
      return blocks.chunks() == 0;
    } finally {
      lock.unlock();
    }
  }

  /** Size of the smallest free block of at least {@code rounded} bytes; 0 if there is none. */
  long bestFitBytes(long rounded) {
    recall();
    lock.lock();
    try {
      drainRemote();
      return blocks.bestFitBytes(rounded);
    } finally {
      lock.unlock();
    }
  }

  /** Whether it is worth asking the stream: there is something free. */
  boolean hasFree(long rounded) {
    recall();
    lock.lock();
    try {
      drainRemote();
      return blocks.largestFreeBytes() >= rounded;
    } finally {
      lock.unlock();
    }
  }

  void count(PoolCensus census) {
    recall();
    FrontCache cache = front;
    long requestedThere = cache == null ? 0 : cache.requestedBytes();
    long allocationsThere = cache == null ? 0 : cache.allocations();
    lock.lock();
    try {
      drainRemote();
      census.add(
          blocks, requestedBytes + requestedThere, peakUsedBytes, allocations + allocationsThere);
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

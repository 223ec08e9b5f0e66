package io.cuvette.internal.streamcache;

import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.SpinLock;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.clock.StreamClock;
import io.cuvette.internal.index.BlockArena;
import io.cuvette.internal.lifetime.ReturnStack;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.pool.Chunks;
import io.cuvette.internal.pool.Slabs;
import io.cuvette.internal.stream.DriverStream;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The blocks that one pool keeps for one stream. Taking and giving are a short spin lock and a few
 * array accesses; a thread that finds the lock taken when it frees leaves its block on a stack with
 * one compare-and-set. No driver call is made under the lock. Thread-safe.
 *
 * <p>Once its stream or its pool is closed, an arena is retired: it ends with its last chunk, and
 * no memory can come in any more. Whoever takes a chunk out keeps it here, in use, until it is
 * elsewhere. So all memory is in an arena that can be found, or with one thread that brings it to
 * an end.
 */
public final class StreamCache extends BlockCache implements Slabs.Source {
  private final Chunks chunks;
  private final Consumer<StreamCache> ended;
  private final SpinLock lock = new SpinLock();
  private final BlockArena blocks = new BlockArena();
  private final FreeChunks freeChunks = new FreeChunks();
  private final CoarseClock clock;
  private final LiveBlocks live = new LiveBlocks();
  private final ReturnStack returned = new ReturnStack();

  /** Made when threads first met here. */
  private volatile @Nullable FrontCache front;

  /** How often memory became free here: as long as that does not change, none did. */
  private long frees;

  /** How often that was when the stream was waited for. */
  private long doneFrees;

  /** The stream's, which numbers its work. */
  private final StreamClock work;

  /** What it showed then. */
  private long freedAt;

  /** Bytes of chunks in use here that are on their way to another arena. */
  private long inHandBytes;

  /** Whether it ended; guarded by the lock. */
  private boolean over;

  private long requestedBytes;
  private long peakUsedBytes;
  private long allocations;

  /**
   * A cache without memory.
   *
   * @param ended is notified when it has ended with its stream or its pool
   */
  StreamCache(DeviceCache of, DriverStream stream, Chunks chunks, Consumer<StreamCache> ended) {
    super(of, stream);
    this.chunks = chunks;
    this.ended = ended;
    this.clock = new CoarseClock(of.clock);
    this.work = stream.clock;
  }

  @Override
  public @Nullable Face take(long bytes, long rounded, OpenStream of) {
    FrontCache cache = front;
    if (cache == null || !FrontCache.keeps(rounded)) {
      return takeHere(bytes, rounded, of, null);
    }
    FrontCache.Stripe stripe = cache.mine();
    Face ready = stripe.take(rounded, bytes, of);
    return ready != null ? ready : takeHere(bytes, rounded, of, stripe);
  }

  private @Nullable Face takeHere(
      long bytes, long rounded, OpenStream of, FrontCache.@Nullable Stripe stripe) {
    boolean met = !lock.tryLock();
    if (met) {
      lock.lock();
    }
    try {
      if (met && front == null && !this.of.releases()) {
        front = new FrontCache(this, this, this);
      }
      drainRemote();
      int block = blocks.find(rounded);
      FrontCache cache = front;
      if (block == BlockArena.NONE
          && cache != null
          && (cache.release(rounded) || cache.releaseAll())) {
        block = blocks.find(rounded);
      }
      if (block == BlockArena.NONE || stripe == null) {
        return block == BlockArena.NONE ? null : lend(block, bytes, rounded, of);
      }
      Memory chunk = chunks.get(blocks.chunk(block));
      return stripe.takeFrom(
          block, blocks.bytes(block), chunk, blocks.address(block), rounded, bytes, of);
    } finally {
      lock.unlock();
    }
  }

  /**
   * Gives a free block to a buffer. Everything that needs the Java heap comes first: if that is
   * full, the block stays free. Under the lock.
   */
  private Face lend(int block, long bytes, long rounded, OpenStream of) {
    Memory chunk = chunks.get(blocks.chunk(block));
    long offset = blocks.offset(block);
    Face buffer = chunk.faces().cut(chunk, offset, bytes, of);
    CachedBlock cached =
        CachedBlock.lend(buffer, this, block, chunk, chunk.address() + offset, bytes, of);
    live.put(block, cached);
    allocations++;
    requestedBytes += bytes;
    take(block, rounded);
    cached.opened(); // last: what is listed is found when it is forgotten
    return buffer;
  }

  @Override
  public void take(int block, long bytes) {
    blocks.take(block, bytes);
    if (blocks.usedBytes() > peakUsedBytes) {
      peakUsedBytes = blocks.usedBytes();
    }
  }

  @Override
  public int cut(int block, long bytes) {
    return blocks.cut(block, bytes);
  }

  /** Brings in what was freed elsewhere, so that all that is free is in sight. Under the lock. */
  private void gather() {
    drainRemote();
    FrontCache cache = front;
    boolean _ = cache != null && cache.releaseAll();
  }

  /**
   * Adds a chunk and gives the first part of it; null if the arena is over. Without a result
   * nothing is added.
   */
  public @Nullable Face adopt(long address, int chunk, long chunkBytes, Request request) {
    lock.lock();
    try {
      return over ? null : adoptNow(address, chunk, chunkBytes, request);
    } finally {
      lock.unlock();
    }
  }

  private Face adoptNow(long address, int chunk, long chunkBytes, Request request) {
    freeChunks.reserve(chunk);
    int whole = blocks.add(address, chunkBytes, chunk);
    freeChunks.freed(chunk, whole, clock.now()); // another block may fit as well
    Face lent = null;
    try {
      int block = blocks.find(request.rounded());
      lent = lend(block, request.bytes(), request.rounded(), request.stream());
      return lent;
    } finally {
      if (lent == null) {
        blocks.remove(whole);
      } else {
        of.held.enterArena(chunkBytes);
        frees++;
        freedAt = work.now(); // it may be here as this stream waits for another
      }
    }
  }

  /** The smallest free block of at least {@code rounded} bytes; null if there is none. */
  public @Nullable Fit fit(long rounded) {
    lock.lock();
    try {
      gather();
      long bytes = blocks.bestFitBytes(rounded);
      return bytes == 0 ? null : new Fit(this, bytes, frees, freedAt, frees == doneFrees);
    } finally {
      lock.unlock();
    }
  }

  /**
   * Takes a whole chunk in hand that is the best fit, if nothing was freed since and nothing is
   * left of it that this stream may want again; it stays here, in use, until {@link #forget}.
   *
   * @return the chunk's block, or {@link BlockArena#NONE}
   */
  public int takeInHand(long rounded, Fit fit) {
    lock.lock();
    try {
      gather();
      int whole = frees == fit.frees() && !over ? blocks.findWhole(rounded) : BlockArena.NONE;
      long most = isRetired() ? blocks.bestFitBytes(rounded) : rounded;
      if (whole == BlockArena.NONE || blocks.bytes(whole) > most) {
        return BlockArena.NONE;
      }
      long bytes = blocks.bytes(whole);
      blocks.take(whole, bytes);
      inHandBytes += bytes;
      of.held.leaveArena(bytes);
      return whole;
    } finally {
      lock.unlock();
    }
  }

  /** Lends the best fit to a buffer of another stream, if nothing was freed since; else null. */
  public @Nullable Face lendTo(Request other, Fit fit) {
    lock.lock();
    try {
      gather();
      int block = frees == fit.frees() ? blocks.find(other.rounded()) : BlockArena.NONE;
      return block == BlockArena.NONE
          ? null
          : lend(block, other.bytes(), other.rounded(), other.stream());
    } finally {
      lock.unlock();
    }
  }

  @Override
  public void awaitFrees() {
    long before;
    lock.lock();
    try {
      gather();
      before = frees;
    } finally {
      lock.unlock();
    }
    boolean isDone = stream.await();
    lock.lock();
    doneFrees = isDone ? Math.max(doneFrees, before) : doneFrees;
    lock.unlock();
  }

  /** The number of the chunk of a block in hand. */
  public int chunk(int inHand) {
    lock.lock();
    int chunk = blocks.chunk(inHand);
    lock.unlock();
    return chunk;
  }

  /** A chunk in hand is elsewhere now, or will be freed. */
  public void forget(int inHand) {
    lock.lock();
    try {
      inHandBytes -= blocks.bytes(inHand);
      blocks.forget(inHand);
    } finally {
      lock.unlock();
    }
    endIfEmpty();
  }

  /** Removes any free whole chunk and gives its number; {@link Chunks#NONE} if there is none. */
  public int removeAnyWhole() {
    lock.lock();
    try {
      gather();
      int whole = stream.isForGraphs() ? BlockArena.NONE : blocks.findWhole(BlockArena.UNIT_BYTES);
      return whole == BlockArena.NONE || over ? Chunks.NONE : removeWhole(whole);
    } finally {
      lock.unlock();
    }
  }

  /** Under the lock. */
  private int removeWhole(int whole) {
    of.held.leaveForGood(blocks.bytes(whole));
    return blocks.remove(whole);
  }

  /**
   * Removes a chunk that is free since some time.
   *
   * @param from the first number to look at
   * @param until the latest time at which it became free
   * @return its number, or {@link Chunks#NONE}
   */
  public int removeIdle(int from, long until) {
    lock.lock();
    try {
      gather();
      int chunk = stream.isForGraphs() || over ? Chunks.NONE : freeChunks.find(blocks, from, until);
      return chunk == Chunks.NONE ? Chunks.NONE : removeWhole(freeChunks.block(chunk));
    } finally {
      lock.unlock();
    }
  }

  /** The bytes in use. */
  public long usedBytes() {
    lock.lock();
    try {
      gather();
      return blocks.usedBytes() - inHandBytes;
    } finally {
      lock.unlock();
    }
  }

  /** The free bytes, of which whole chunks can be released. */
  public long cachedBytes() {
    lock.lock();
    long free = blocks.freeBytes();
    lock.unlock();
    return stream.isForGraphs() ? 0 : free;
  }

  @Override
  public void giveOrLeave(CachedBlock block) {
    if (block.stripe == null) {
      giveHere(block);
    } else {
      giveToStripe(block);
    }
    if (of.releases()) {
      of.releaseAfterFree(this);
    }
  }

  private void giveToStripe(CachedBlock block) {
    if (!block.giveToStripe()) {
      returned.push(block);
    }
  }

  private void giveHere(CachedBlock block) {
    if (lock.tryLock()) {
      try {
        drainRemote();
        give(block, clock.now());
      } finally {
        lock.unlock();
      }
    } else {
      returned.push(block);
    }
  }

  private void drainRemote() {
    if (!returned.isEmpty()) {
      giveAll((CachedBlock) returned.takeAll(), clock.now());
    }
  }

  private void giveAll(@Nullable CachedBlock list, long time) {
    CachedBlock block = list;
    while (block != null) {
      CachedBlock next = (CachedBlock) block.next;
      block.next = null;
      give(block, time);
      block = next;
    }
  }

  /** What there is no room for in the Java heap now is given with a later call. */
  private void give(CachedBlock block, long time) {
    if (block.stripe != null) {
      giveToStripe(block);
      return;
    }
    try {
      give(block.block, block.blockBytes(), time);
    } catch (OutOfMemoryError e) {
      returned.push(block);
      return;
    }
    live.put(block.block, null);
    requestedBytes -= block.requestedBytes;
  }

  @Override
  public void give(int block, long bytes, long time) {
    int free = blocks.give(block);
    if (blocks.isWhole(free)) {
      freeChunks.freed(blocks.chunk(free), free, time);
    }
    frees++;
    freedAt = work.now();
  }

  @Override
  public void endIfEmpty() {
    if (isRetired() && tryEnd()) {
      ended.accept(this);
    }
  }

  private boolean tryEnd() {
    lock.lock();
    try {
      boolean ends = !over && blocks.chunks() == 0;
      over |= ends;
      return ends;
    } finally {
      lock.unlock();
    }
  }

  /** Ends all buffers without giving anything back; the caller frees the chunks. */
  public void endAll(Failures failures) {
    List<CachedBlock> all = new ArrayList<>();
    lock.lock();
    try {
      over = true;
      FrontCache cache = front;
      if (cache != null) {
        all.addAll(cache.endAll());
      }
      live.forEach(all::add);
      live.clear();
    } finally {
      lock.unlock();
    }
    all.forEach(block -> failures.run(block::abandon));
  }

  /** Whether it is worth asking the stream: there is something free. */
  public boolean hasFree(long rounded) {
    lock.lock();
    try {
      gather();
      return blocks.largestFreeBytes() >= rounded;
    } finally {
      lock.unlock();
    }
  }

  /** Whether the collector has found a buffer of a block that was not taken back yet. */
  public boolean hasForgotten() {
    FrontCache cache = front;
    return live.hasForgotten(lock) || (cache != null && cache.hasForgotten());
  }

  public void count(PoolCensus census) {
    lock.lock();
    try {
      gather();
      census.add(blocks, requestedBytes, peakUsedBytes, allocations);
      census.add(front);
      if (stream.isForGraphs()) {
        census.keepForGraphs(blocks);
      }
      census.usedBytes -= inHandBytes;
    } finally {
      lock.unlock();
    }
  }

  public void resetPeak() {
    lock.lock();
    peakUsedBytes = blocks.usedBytes();
    lock.unlock();
  }

  /** Lets nothing in or out until {@link #resume}, and gives the bytes that it has. */
  public long pause() {
    lock.lock();
    return blocks.heldBytes() - inHandBytes;
  }

  public void resume() {
    lock.unlock();
  }

  @Override
  public String toString() {
    return "arena of " + stream;
  }
}

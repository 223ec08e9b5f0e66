package io.cuvette.internal.streamcache;

import io.cuvette.internal.base.SpinLock;
import io.cuvette.internal.base.Spread;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.lifetime.ReturnStack;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.pool.Slabs;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * Memory kept ready in front of a cache that several threads allocate from at once. Each thread
 * works on a stripe of its own, which takes slabs from the cache and cuts blocks out of them; a
 * block comes back to its stripe, and is there for blocks of any size without touching the cache. A
 * cache gets a front at its first contention. What is free there comes back before the cache
 * reports that a block is missing, before it is counted and before it releases memory: nothing is
 * held back. Thread-safe.
 */
public final class FrontCache {
  /** Blocks below this size are cut from slabs of their own. */
  public static final long SMALL_BYTES = 64L << 10;

  private static final long LARGEST_BLOCK_BYTES = 4L << 20;
  private static final long SLAB_BYTES = 8L << 20;
  private static final long SMALL_SLAB_BYTES = 256L << 10;

  private final AtomicReferenceArray<@Nullable Stripe> stripes =
      new AtomicReferenceArray<>(Spread.PLACES);
  private final BlockCache of;
  private final Slabs.Source[] sources;

  /**
   * An empty one.
   *
   * @param of what gives the memory, and has it back
   * @param small where slabs for small blocks come from
   * @param large the same for others
   */
  public FrontCache(BlockCache of, Slabs.Source small, Slabs.Source large) {
    this.of = of;
    this.sources = new Slabs.Source[] {small, large};
  }

  /** The stripe of this thread. */
  public Stripe mine() {
    int place = Spread.mine(Spread.PLACES);
    Stripe stripe = stripes.getAcquire(place);
    if (stripe == null) {
      boolean _ = stripes.compareAndSet(place, null, new Stripe(of, sources));
      stripe = stripes.get(place);
    }
    return stripe;
  }

  /** Whether blocks of a size are kept. */
  public static boolean keeps(long blockBytes) {
    return blockBytes <= LARGEST_BLOCK_BYTES;
  }

  private static int kind(long blockBytes) {
    return blockBytes < SMALL_BYTES ? 0 : 1;
  }

  /**
   * Gives the cache a free block of at least so many bytes that is little larger, if a stripe has
   * one, else the smallest; false if there is none. Under the lock of the cache.
   */
  public boolean release(long blockBytes) {
    int kind = kind(blockBytes);
    int mine = Spread.mine(Spread.PLACES);
    Stripe best = null;
    long least = Long.MAX_VALUE;
    for (int i = 0; i < Spread.PLACES && !Slabs.isClose(least, blockBytes); i++) {
      Stripe stripe = stripes.getAcquire((mine + i) & (Spread.PLACES - 1));
      long bytes = stripe == null ? 0 : stripe.bestFitBytes(kind, blockBytes);
      if (bytes > 0 && bytes < least) {
        best = stripe;
        least = bytes;
      }
    }
    return best != null && best.release(kind, blockBytes);
  }

  /**
   * Gives the cache all that is free, as far as the Java heap allows; false if that is nothing.
   * Under the lock of the cache.
   */
  public boolean releaseAll() {
    return sum(stripe -> stripe.releaseAll() ? 1 : 0) > 0;
  }

  /** Blocks in use that stripes gave out; none gives out any more. */
  public List<CachedBlock> endAll() {
    List<CachedBlock> all = new ArrayList<>();
    for (int i = 0; i < stripes.length(); i++) {
      Stripe stripe = stripes.getAcquire(i);
      if (stripe != null) {
        stripe.endAll(all);
      }
    }
    return all;
  }

  /** Whether the collector has found a buffer that a stripe gave out. */
  public boolean hasForgotten() {
    return sum(stripe -> stripe.hasForgotten() ? 1 : 0) > 0;
  }

  public long requestedBytes() {
    return sum(Stripe::requestedBytes);
  }

  public long allocations() {
    return sum(Stripe::allocations);
  }

  /** How many more blocks are in use than there are slabs, each of which the cache has as one. */
  public int blocksBesideSlabs() {
    return (int) sum(Stripe::blocksBesideSlabs);
  }

  /** Checks all that is here. */
  public boolean assertValid() {
    return sum(Stripe::assertValid) == 0;
  }

  private long sum(ToLongFunction<Stripe> number) {
    long sum = 0;
    for (int i = 0; i < stripes.length(); i++) {
      Stripe stripe = stripes.getAcquire(i);
      sum += stripe == null ? 0 : number.applyAsLong(stripe);
    }
    return sum;
  }

  /** The slabs of some threads. Thread-safe. */
  public static final class Stripe {
    private static final int REQUESTED_BYTES = 32;
    private static final int ALLOCATIONS = REQUESTED_BYTES + 1;

    private final SpinLock lock = new SpinLock();
    private final BlockCache of;
    private final CoarseClock clock;

    /** For small blocks, and for others; with the blocks in use by their numbers. */
    private final Slabs[] slabs;

    private final LiveBlocks[] live = {new LiveBlocks(), new LiveBlocks()};

    /** What others than the last taker closed: giving it would fetch all lines of this stripe. */
    private final ReturnStack left = new ReturnStack();

    /** The thread that took last. */
    private volatile long taker;

    /** At the index of each; far from what others read of this object. */
    private final long[] counts = new long[ALLOCATIONS + REQUESTED_BYTES];

    /** Whether the pool is torn down. */
    private boolean over;

    private Stripe(BlockCache of, Slabs.Source[] sources) {
      this.of = of;
      this.clock = new CoarseClock(of.of.clock);
      this.slabs = new Slabs[] {new Slabs(sources[0]), new Slabs(sources[1])};
    }

    /**
     * A buffer of what is free here; null if nothing suits.
     *
     * @throws IllegalStateException if the pool was torn down by another thread
     */
    public @Nullable Face take(long blockBytes, long bytes, OpenStream stream) {
      long thread = Thread.currentThread().threadId();
      if (taker != thread) {
        taker = thread;
      }
      lock.lock();
      try {
        Face ready = takeNow(blockBytes, bytes, stream);
        return ready != null || !takeIn() ? ready : takeNow(blockBytes, bytes, stream);
      } finally {
        lock.unlock();
      }
    }

    private @Nullable Face takeNow(long blockBytes, long bytes, OpenStream stream) {
      Slabs own = slabs[kind(blockBytes)];
      int part = own.find(blockBytes);
      boolean suits = part != Slabs.NONE && own.suits(part, blockBytes);
      return suits ? lend(part, blockBytes, bytes, stream) : null;
    }

    /**
     * A buffer of a slab that is taken from the cache, unless what is here is smaller. Under the
     * lock of the cache.
     *
     * @param block a free one of the cache that fits
     * @param freeBytes its size
     * @param chunk the memory that it is a part of
     * @throws IllegalStateException if the pool was torn down by another thread
     */
    public Face takeFrom(
        int block,
        long freeBytes,
        Memory chunk,
        long address,
        long blockBytes,
        long bytes,
        OpenStream stream) {
      int kind = kind(blockBytes);
      long most = kind == 0 ? SMALL_SLAB_BYTES : SLAB_BYTES; // more than any block
      Slabs own = slabs[kind];
      lock.lock();
      try {
        checkOpen();
        boolean _ = takeIn();
        int part = own.find(blockBytes);
        if (part == Slabs.NONE || own.bytes(part) > freeBytes) {
          own.add(block, Math.min(freeBytes, most), chunk, address);
          part = own.find(blockBytes);
        }
        return lend(part, blockBytes, bytes, stream);
      } finally {
        lock.unlock();
      }
    }

    /** Gives a free part to a buffer. What needs the Java heap comes first. */
    private Face lend(int part, long blockBytes, long bytes, OpenStream stream) {
      checkOpen();
      int kind = kind(blockBytes);
      Slabs own = slabs[kind];
      Memory chunk = own.chunk(part);
      long address = own.address(part);
      Face buffer = chunk.faces().cut(chunk, address - chunk.address(), bytes, stream);
      CachedBlock lent = CachedBlock.lend(buffer, of, part, chunk, address, bytes, stream);
      lent.stripe = this;
      live[kind].put(part, lent);
      own.take(part, blockBytes);
      counts[REQUESTED_BYTES] += bytes;
      counts[ALLOCATIONS]++;
      lent.opened(); // last: what is listed is found when it is forgotten
      return buffer;
    }

    private void checkOpen() {
      if (over) {
        throw new IllegalStateException("the pool is closed");
      }
    }

    /**
     * Takes a block back, which another thread leaves. Changes nothing if the Java heap is full.
     */
    public void give(CachedBlock block) {
      if (Thread.currentThread().threadId() != taker) {
        left.push(block);
        return;
      }
      lock.lock();
      try {
        giveNow(block);
      } finally {
        lock.unlock();
      }
    }

    private void giveNow(CachedBlock block) {
      int kind = kind(block.blockBytes());
      slabs[kind].give(block.block);
      live[kind].put(block.block, null);
      counts[REQUESTED_BYTES] -= block.requestedBytes;
      long _ = clock.now();
    }

    /** Takes in what was left, as far as the Java heap allows; false if that is nothing. */
    private boolean takeIn() {
      CachedBlock list = (CachedBlock) left.takeAll();
      for (CachedBlock block = list, next; block != null; block = next) {
        next = (CachedBlock) block.next;
        block.next = null;
        try {
          giveNow(block);
        } catch (OutOfMemoryError e) {
          left.push(block);
        }
      }
      return list != null;
    }

    private long bestFitBytes(int kind, long blockBytes) {
      lock.lock();
      try {
        boolean _ = takeIn();
        return slabs[kind].bestFitBytes(blockBytes);
      } finally {
        lock.unlock();
      }
    }

    private boolean release(int kind, long blockBytes) {
      lock.lock();
      try {
        return slabs[kind].release(blockBytes, clock.last());
      } finally {
        lock.unlock();
      }
    }

    private boolean releaseAll() {
      lock.lock();
      try {
        boolean _ = takeIn();
        boolean small = slabs[0].releaseAll(clock.last());
        return slabs[1].releaseAll(clock.last()) || small;
      } catch (OutOfMemoryError e) {
        return true; // some of it
      } finally {
        lock.unlock();
      }
    }

    private void endAll(List<CachedBlock> all) {
      lock.lock();
      try {
        boolean _ = takeIn();
        over = true;
        for (LiveBlocks blocks : live) {
          blocks.forEach(all::add);
          blocks.clear();
        }
      } finally {
        lock.unlock();
      }
    }

    private boolean hasForgotten() {
      return live[0].hasForgotten(lock) || live[1].hasForgotten(lock);
    }

    private long requestedBytes() {
      lock.lock();
      try {
        boolean _ = takeIn();
        return counts[REQUESTED_BYTES];
      } finally {
        lock.unlock();
      }
    }

    private long allocations() {
      lock.lock();
      try {
        return counts[ALLOCATIONS];
      } finally {
        lock.unlock();
      }
    }

    private long blocksBesideSlabs() {
      lock.lock();
      try {
        boolean _ = takeIn();
        return (long) slabs[0].blocksBeside() + slabs[1].blocksBeside();
      } finally {
        lock.unlock();
      }
    }

    private long assertValid() {
      lock.lock();
      try {
        slabs[0].assertValid();
        slabs[1].assertValid();
        return 0;
      } finally {
        lock.unlock();
      }
    }
  }
}

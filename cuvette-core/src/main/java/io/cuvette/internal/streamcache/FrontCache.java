package io.cuvette.internal.streamcache;

import io.cuvette.internal.base.SpinLock;
import io.cuvette.internal.base.Spread;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.order.OpenStream;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Blocks kept ready in front of an arena that several threads allocate from at once. Each thread
 * works on a stripe of its own; a block given out by a stripe comes back to it and is handed out
 * again for exactly its size, without touching the arena. An arena gets one at its first contention
 * and empties it before it reports that a block is missing, before it is counted and before it
 * releases memory: nothing is held back. Thread-safe.
 */
public final class FrontCache {
  private static final int SLOTS = 16;
  private static final long LARGEST_BLOCK_BYTES = 4L << 20;

  private final Stripe[] stripes = new Stripe[Spread.PLACES];

  /**
   * An empty one.
   *
   * @param clock tells the time in nanoseconds
   */
  public FrontCache(LongSupplier clock) {
    for (int i = 0; i < Spread.PLACES; i++) {
      stripes[i] = new Stripe(clock);
    }
  }

  /** The stripe of this thread. */
  public Stripe mine() {
    return stripes[Spread.mine(Spread.PLACES)];
  }

  /** Whether blocks of a size are kept. */
  public static boolean keeps(long blockBytes) {
    return blockBytes <= LARGEST_BLOCK_BYTES;
  }

  /**
   * Takes all cached blocks out, in a list through {@code next}; they are in use as far as the
   * arena knows. Allocates nothing.
   */
  public @Nullable CachedBlock removeCached() {
    CachedBlock all = null;
    for (Stripe stripe : stripes) {
      all = stripe.removeCached(all);
    }
    return all;
  }

  /** When a block came back last. */
  public long lastFree() {
    long last = stripes[0].lastFree();
    for (Stripe stripe : stripes) {
      long time = stripe.lastFree();
      last = time - last > 0 ? time : last;
    }
    return last;
  }

  /** Blocks in use that stripes gave out; none gives out any more. */
  public List<CachedBlock> endAll() {
    List<CachedBlock> all = new ArrayList<>();
    for (Stripe stripe : stripes) {
      stripe.endAll(all);
    }
    return all;
  }

  /** Whether the collector has found a buffer that a stripe gave out. */
  public boolean hasForgotten() {
    for (Stripe stripe : stripes) {
      if (stripe.hasForgotten()) {
        return true;
      }
    }
    return false;
  }

  public long requestedBytes() {
    long sum = 0;
    for (Stripe stripe : stripes) {
      sum += stripe.requestedBytes();
    }
    return sum;
  }

  public long allocations() {
    long sum = 0;
    for (Stripe stripe : stripes) {
      sum += stripe.allocations();
    }
    return sum;
  }

  /** The blocks of some threads. Thread-safe. */
  public static final class Stripe {
    private final SpinLock lock = new SpinLock();
    private final CoarseClock clock;

    /** Ended blocks, last in first out; what they were is all that is read of them. */
    private final @Nullable CachedBlock[] cached = new CachedBlock[SLOTS];

    private int count;

    /** The newest of the blocks in use, a list through {@code older} and {@code newer}. */
    private @Nullable CachedBlock newest;

    private long requestedBytes;
    private long allocations;

    /** Whether the pool is torn down. */
    private boolean over;

    private Stripe(LongSupplier clock) {
      this.clock = new CoarseClock(clock);
    }

    /**
     * A buffer of a cached block of exactly a size; null if there is none.
     *
     * @throws IllegalStateException if the pool was torn down by another thread
     */
    public @Nullable Face take(long blockBytes, long bytes, OpenStream of) {
      lock.lock();
      try {
        for (int i = count - 1; i >= 0; i--) {
          CachedBlock ready = cached[i];
          if (ready != null && ready.blockBytes() == blockBytes) {
            Memory chunk = ready.chunk;
            long address = ready.address;
            Face buffer = chunk.faces().cut(chunk, address - chunk.address(), bytes, of);
            CachedBlock lent =
                CachedBlock.lend(buffer, ready.arena, ready.block, chunk, address, bytes, of);
            link(lent);
            cached[i] = cached[--count];
            cached[count] = null;
            lent.opened();
            return buffer;
          }
        }
        return null;
      } finally {
        lock.unlock();
      }
    }

    /**
     * Counts a block as in use.
     *
     * @throws IllegalStateException if the pool was torn down by another thread
     */
    public void lend(CachedBlock block) {
      lock.lock();
      try {
        link(block);
      } finally {
        lock.unlock();
      }
    }

    private void link(CachedBlock block) {
      if (over) {
        throw new IllegalStateException("the pool is closed");
      }
      block.stripe = this;
      block.older = newest;
      if (newest != null) {
        newest.newer = block;
      }
      newest = block;
      requestedBytes += block.requestedBytes;
      allocations++;
    }

    /** Takes a block back; false if the stripe is full and the arena must have it. */
    public boolean give(CachedBlock block) {
      lock.lock();
      try {
        unlink(block);
        requestedBytes -= block.requestedBytes;
        if (count == SLOTS) {
          return false;
        }
        cached[count++] = block;
        long _ = clock.now();
        return true;
      } finally {
        lock.unlock();
      }
    }

    private void unlink(CachedBlock block) {
      CachedBlock older = block.older;
      CachedBlock newer = block.newer;
      if (older != null) {
        older.newer = newer;
      }
      if (newer != null) {
        newer.older = older;
      } else {
        newest = older;
      }
      block.older = null;
      block.newer = null;
    }

    private @Nullable CachedBlock removeCached(@Nullable CachedBlock rest) {
      CachedBlock all = rest;
      lock.lock();
      try {
        while (count > 0) {
          CachedBlock block = cached[--count];
          cached[count] = null;
          if (block != null) {
            block.next = all;
            all = block;
          }
        }
        return all;
      } finally {
        lock.unlock();
      }
    }

    private void endAll(List<CachedBlock> all) {
      lock.lock();
      try {
        over = true;
        for (CachedBlock block = newest; block != null; block = block.older) {
          all.add(block);
        }
      } finally {
        lock.unlock();
      }
    }

    private long lastFree() {
      lock.lock();
      try {
        return clock.last();
      } finally {
        lock.unlock();
      }
    }

    private boolean hasForgotten() {
      lock.lock();
      try {
        for (CachedBlock block = newest; block != null; block = block.older) {
          if (block.isForgotten()) {
            return true;
          }
        }
        return false;
      } finally {
        lock.unlock();
      }
    }

    private long requestedBytes() {
      lock.lock();
      try {
        return requestedBytes;
      } finally {
        lock.unlock();
      }
    }

    private long allocations() {
      lock.lock();
      try {
        return allocations;
      } finally {
        lock.unlock();
      }
    }
  }
}

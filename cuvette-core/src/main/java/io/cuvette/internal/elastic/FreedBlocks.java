package io.cuvette.internal.elastic;

import io.cuvette.internal.lifetime.ReturnStack;
import io.cuvette.internal.pool.Budget;
import io.cuvette.internal.pool.Cap;
import io.cuvette.internal.space.AgeList;
import io.cuvette.internal.space.HeapCensus;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.CoarseClock;
import io.cuvette.internal.streamcache.FrontCache;
import java.util.List;
import java.util.Objects;
import java.util.function.LongSupplier;
import java.util.function.ObjLongConsumer;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * Blocks that were freed and that their space has as in use still: the last one, those that threads
 * left as they met another, and those that lie ready in front of the heap for streams whose threads
 * met there. Nothing here needs room in the Java heap.
 *
 * <p>Guarded by the heap's lock, but for {@link #leave}, which is lock-free.
 */
final class FreedBlocks {
  private final ObjLongConsumer<CachedBlock> giving;
  private final CoarseClock clock;
  private final ElasticBooks books;
  private final Cap cap;
  private final Budget held;
  private final ReturnStack left = new ReturnStack();

  private @Nullable CachedBlock inHand;
  private long inHandSince;

  /** The caches that have a front, a list through {@code nextWithFront}. */
  private @Nullable ElasticCache first;

  /**
   * None.
   *
   * @param giving gives a block to its space, free since a time
   * @param books of the heap's own blocks
   */
  FreedBlocks(
      ObjLongConsumer<CachedBlock> giving,
      LongSupplier clock,
      ElasticBooks books,
      Cap cap,
      Budget held) {
    this.giving = giving;
    this.clock = new CoarseClock(clock);
    this.books = books;
    this.cap = cap;
    this.held = held;
  }

  /** Gives a block to its stripe, or leaves it. */
  void giveToStripe(CachedBlock block) {
    if (!block.giveToStripe()) {
      leave(block);
    }
  }

  /** Leaves a block to be given later. */
  void leave(CachedBlock block) {
    left.push(block);
  }

  /** Gives what there is, and has a block in hand: the next allocation may be of its size. */
  void hold(CachedBlock block) {
    giveNow();
    inHandSince = clock.now();
    inHand = block;
  }

  /** The block in hand, if it is one of a stream and size. */
  @Nullable CachedBlock inHand(ElasticCache cache, long rounded) {
    CachedBlock last = inHand;
    return last != null && last.arena == cache && last.blockBytes() == rounded ? last : null;
  }

  @Nullable CachedBlock takeOutOfHand() {
    CachedBlock last = inHand;
    inHand = null;
    return last;
  }

  /** Gives what is in no front. What is left meanwhile stays. */
  void giveNow() {
    CachedBlock last = takeOutOfHand();
    if (last != null) {
      giving.accept(last, inHandSince);
    }
    CachedBlock list = (CachedBlock) left.takeAll();
    for (CachedBlock block = list, next; block != null; block = next) {
      next = (CachedBlock) block.next;
      block.next = null;
      giving.accept(block, AgeList.NOW);
    }
  }

  /** Gives all, so that all that is free is in sight. */
  void giveAll() {
    giveNow();
    for (ElasticCache each = first; each != null; each = each.nextWithFront) {
      boolean _ = recall(each);
    }
  }

  /** Gives all for a block that is missing, unless what fronts have is left to them. */
  void giveFor(long rounded) {
    if (leavesApart(rounded)) {
      giveNow();
    } else {
      giveAll();
    }
  }

  /** Gives what the front of a cache has; false if that is nothing. */
  boolean recall(ElasticCache cache) {
    FrontCache front = cache.front;
    return front != null && front.releaseAll();
  }

  /**
   * Has the front of a cache give what fits a block, else all; false if that is nothing, or is left
   * to it.
   */
  boolean recall(ElasticCache cache, long rounded) {
    FrontCache front = cache.front;
    if (front == null || front.release(rounded)) {
      return front != null;
    }
    boolean all = !leavesApart(rounded) && recall(cache);
    if (all) {
      cap.gathered(allocations());
    }
    return all;
  }

  /** Whether more is mapped for a block before what is free elsewhere is brought together. */
  boolean leavesApart(long rounded) {
    return cap.leavesApart(rounded, this::requestedBytes, held);
  }

  /** Gives a cache a front, if it has none. */
  void addFront(ElasticCache cache, FrontCache front) {
    if (cache.front == null) {
      cache.front = front;
      cache.nextWithFront = first;
      first = cache;
    }
  }

  /** Of a cache that has ended; gives how many blocks its front ever gave out. */
  long removeFront(ElasticCache cache) {
    FrontCache front = cache.front;
    if (front == null) {
      return 0;
    }
    ElasticCache before = null;
    for (ElasticCache each = first; each != null && each != cache; each = each.nextWithFront) {
      before = each;
    }
    if (before == null) {
      first = cache.nextWithFront;
    } else {
      before.nextWithFront = cache.nextWithFront;
    }
    cache.front = null;
    return front.allocations();
  }

  /** Adds the blocks in use that fronts gave out; there are no fronts any more. */
  void endFronts(List<CachedBlock> blocks) {
    for (ElasticCache each = first; each != null; each = first) {
      blocks.addAll(Objects.requireNonNull(each.front).endAll());
      books.allocations += removeFront(each);
    }
  }

  /** What was asked for of the blocks in use, with those that fronts gave out. */
  long requestedBytes() {
    return books.requestedBytes + sum(FrontCache::requestedBytes);
  }

  /** How many blocks were given out, also by fronts. */
  long allocations() {
    return books.allocations + sum(FrontCache::allocations);
  }

  /** Adds what is in use, here and of the heap. */
  void count(HeapCensus census) {
    books.write(census);
    census.requestedBytes = requestedBytes();
    census.usedBlocks += (int) sum(FrontCache::blocksBesideSlabs);
    census.allocations = allocations();
  }

  private long sum(ToLongFunction<FrontCache> number) {
    long sum = 0;
    for (ElasticCache each = first; each != null; each = each.nextWithFront) {
      FrontCache front = each.front;
      sum += front == null ? 0 : number.applyAsLong(front);
    }
    return sum;
  }
}

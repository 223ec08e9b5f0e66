package io.cuvette.internal.elastic;

import io.cuvette.internal.lifetime.ReturnStack;
import io.cuvette.internal.space.AgeList;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.CoarseClock;
import io.cuvette.internal.streamcache.FrontCache;
import java.util.List;
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
  private final ReturnStack left = new ReturnStack();

  private @Nullable CachedBlock inHand;
  private long inHandSince;

  /** The caches that have a front, a list through {@code nextWithFront}. */
  private @Nullable ElasticCache first;

  /**
   * None.
   *
   * @param giving gives a block to its space, free since a time
   */
  FreedBlocks(ObjLongConsumer<CachedBlock> giving, LongSupplier clock) {
    this.giving = giving;
    this.clock = new CoarseClock(clock);
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
      recall(each);
    }
  }

  /** Gives what the front of a cache has. */
  void recall(ElasticCache cache) {
    FrontCache front = cache.front;
    if (front != null) {
      boolean _ = front.releaseAll();
    }
  }

  /** Gives what the front of a cache has for a block of a size; false if that is nothing. */
  boolean recall(ElasticCache cache, long rounded) {
    FrontCache front = cache.front;
    return front != null && front.release(rounded);
  }

  /** Whether some cache has a front. */
  boolean hasFronts() {
    return first != null;
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

  /** Adds the blocks in use that fronts gave out; none gives out any more. */
  void endFronts(List<CachedBlock> blocks) {
    for (ElasticCache each = first; each != null; each = each.nextWithFront) {
      FrontCache front = each.front;
      if (front != null) {
        blocks.addAll(front.endAll());
      }
    }
  }

  /** What was asked for of the blocks in use that fronts gave out. */
  long requestedBytes() {
    return sum(FrontCache::requestedBytes);
  }

  /** How many blocks fronts gave out. */
  long allocations() {
    return sum(FrontCache::allocations);
  }

  /** How many more blocks in use fronts have than slabs. */
  int blocksBesideSlabs() {
    return (int) sum(FrontCache::blocksBesideSlabs);
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

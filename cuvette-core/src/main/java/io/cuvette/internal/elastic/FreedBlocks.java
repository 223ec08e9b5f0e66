package io.cuvette.internal.elastic;

import io.cuvette.internal.space.AgeList;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.CoarseClock;
import io.cuvette.internal.streamcache.FrontCache;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongSupplier;
import java.util.function.ObjLongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Blocks that were freed and that their space has as in use still: the last one, those that threads
 * left as they met another, and those that lie ready in front of the heap for streams whose threads
 * met there. Only {@link #addFront} needs room in the Java heap.
 *
 * <p>Guarded by the heap's lock, but for {@link #leave}, which is lock-free.
 */
final class FreedBlocks {
  private final ObjLongConsumer<CachedBlock> giving;
  private final CoarseClock clock;
  private final AtomicReference<@Nullable CachedBlock> left = new AtomicReference<>();

  private @Nullable CachedBlock inHand;
  private long inHandSince;

  /** The caches that have a front, a list through {@code nextInFront}. */
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
    CachedBlock next;
    do {
      next = left.get();
      block.next = next;
    } while (!left.compareAndSet(next, block));
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
    if (left.get() != null) {
      boolean _ = giveAll(left.getAndSet(null), AgeList.NOW);
    }
  }

  private boolean giveAll(@Nullable CachedBlock list, long since) {
    for (CachedBlock block = list, next; block != null; block = next) {
      next = (CachedBlock) block.next;
      block.next = null;
      giving.accept(block, since);
    }
    return list != null;
  }

  /** Gives all, so that all that is free is in sight. */
  void giveAll() {
    giveNow();
    for (ElasticCache each = first; each != null; each = each.nextInFront) {
      boolean _ = recall(each);
    }
  }

  /** Gives what is in no front, and in that of a cache; false if that one had nothing. */
  boolean giveOf(ElasticCache cache) {
    giveNow();
    return recall(cache);
  }

  private boolean recall(ElasticCache cache) {
    FrontCache front = cache.front;
    return front != null && giveAll(front.removeCached(), front.lastFree());
  }

  /** Whether some cache has a front. */
  boolean hasFronts() {
    return first != null;
  }

  /** Gives a cache a front, if it has none. */
  void addFront(ElasticCache cache) {
    if (cache.front == null) {
      cache.front = new FrontCache(cache.of.clock);
      cache.nextInFront = first;
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
    for (ElasticCache each = first; each != null && each != cache; each = each.nextInFront) {
      before = each;
    }
    if (before == null) {
      first = cache.nextInFront;
    } else {
      before.nextInFront = cache.nextInFront;
    }
    cache.front = null;
    return front.allocations();
  }

  /** Adds the blocks in use that fronts gave out; none gives out any more. */
  void endFronts(List<CachedBlock> blocks) {
    for (ElasticCache each = first; each != null; each = each.nextInFront) {
      FrontCache front = each.front;
      if (front != null) {
        blocks.addAll(front.endAll());
      }
    }
  }

  /** What was asked for of the blocks in use that fronts gave out. */
  long requestedBytes() {
    long sum = 0;
    for (ElasticCache each = first; each != null; each = each.nextInFront) {
      FrontCache front = each.front;
      sum += front == null ? 0 : front.requestedBytes();
    }
    return sum;
  }

  /** How many blocks fronts gave out. */
  long allocations() {
    long sum = 0;
    for (ElasticCache each = first; each != null; each = each.nextInFront) {
      FrontCache front = each.front;
      sum += front == null ? 0 : front.allocations();
    }
    return sum;
  }
}

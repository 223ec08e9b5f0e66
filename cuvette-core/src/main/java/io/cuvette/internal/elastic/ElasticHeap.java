package io.cuvette.internal.elastic;

import io.cuvette.internal.base.SpinLock;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.paged.Window;
import io.cuvette.internal.pool.Budget;
import io.cuvette.internal.pool.Cap;
import io.cuvette.internal.pool.Slabs;
import io.cuvette.internal.space.Growth;
import io.cuvette.internal.space.HeapCensus;
import io.cuvette.internal.space.Place;
import io.cuvette.internal.space.Space;
import io.cuvette.internal.space.Victim;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.FrontCache;
import io.cuvette.internal.streamcache.LiveBlocks;
import io.cuvette.internal.streamcache.Request;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.OptionalLong;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The memory of a pool on one device, shared by all streams: which blocks are in use and free, and
 * what could be unmapped. No driver call is made under its lock; a thread that finds that taken
 * when it frees leaves its block on a stack. Thread-safe.
 */
final class ElasticHeap {
  private static final long STEP_BYTES = 256L << 20;

  private final Memory memory;
  private final Window window;
  private final Budget held;
  private final SpinLock lock = new SpinLock();

  private final Spaces spaces;
  private final LiveBlocks[] live = {new LiveBlocks(), new LiveBlocks()};
  private final FreedBlocks freed;
  private final Cap cap = new Cap();
  private final ElasticBooks books = new ElasticBooks();
  private final Moves moves;

  /** Whether the pool has ended. */
  private boolean over;

  /**
   * A heap that has no memory.
   *
   * @param memory the window
   * @param smallBytes how much of the window is for small blocks
   */
  ElasticHeap(Memory memory, long smallBytes, Budget held, LongSupplier clock) {
    this.memory = memory;
    this.window = (Window) memory.block();
    this.held = held;
    this.moves = new Moves(held);
    this.freed = new FreedBlocks(this::give, clock, books, cap, held);
    this.spaces = new Spaces(memory, smallBytes, window.pieces, clock);
  }

  /** What stripes in front of a cache take from. */
  Slabs.Source slabs(ElasticCache cache, int kind) {
    return new HeapSlabs(spaces, books, cache, kind);
  }

  /** A tag that nobody has. */
  int newTag() {
    return (int) locked(spaces::newTag);
  }

  /** Ends a cache that has nothing; false if it has, or has ended. */
  boolean endIfEmpty(ElasticCache cache) {
    lock.lock();
    try {
      recall(cache);
      if (cache.live != 0 || freeBytes(cache) > 0) {
        return false;
      }
      books.allocations += freed.removeFront(cache);
      cache.live = Integer.MIN_VALUE; // it takes nothing more
      spaces.endTag(cache.tag);
      return true;
    } finally {
      lock.unlock();
    }
  }

  /** The free bytes that belong to a stream. */
  long freeBytesOf(ElasticCache cache) {
    return locked(() -> {
      recall(cache);
      return freeBytes(cache);
    });
  }

  private long freeBytes(ElasticCache cache) {
    return cache.hasEnded() ? 0 : spaces.freeBytes(cache.tag);
  }

  /** What {@link #done} is called with for all that was freed so far. */
  long sequence() {
    return locked(() -> {
      catchUp();
      return spaces.sequence();
    });
  }

  /** The stream was idle after a sequence was read. */
  void done(ElasticCache cache, long until) {
    lock.lock();
    try {
      if (!cache.hasEnded()) {
        spaces.done(cache.tag, until);
      }
    } finally {
      lock.unlock();
    }
  }

  /**
   * A free block; null if none fits.
   *
   * @param from what has it free: the cache itself, or one whose work comes before
   * @param stripe what lists it among those in use; null for the heap itself
   */
  @Nullable Face take(
      ElasticCache cache,
      ElasticCache from,
      long bytes,
      long rounded,
      OpenStream of,
      FrontCache.@Nullable Stripe stripe) {
    FrontCache front = null;
    if (!lock.tryLock()) {
      front = cache.newFront(); // not under the lock: it is large
      lock.lock();
    }
    try {
      if (over || cache.hasEnded() || from.hasEnded()) {
        return null;
      }
      if (front != null) {
        freed.addFront(cache, front);
      }
      CachedBlock last = stripe == null ? freed.inHand(cache, rounded) : null;
      if (last != null) {
        return lend(cache, last.block, bytes, rounded, of);
      }
      catchUp();
      if (from != cache && !from.isBefore(cache.stream.clock)) {
        return null;
      }
      Space space = spaces.of(Spaces.kind(rounded));
      long units = Spaces.units(rounded);
      int run = space.find(units, from.tag);
      if (run == Space.NONE && from == cache && freed.recall(cache, rounded)) {
        run = space.find(units, cache.tag);
      }
      if (run == Space.NONE || stripe == null) {
        return run == Space.NONE ? null : lend(cache, run, bytes, rounded, of);
      }
      return stripe.takeFrom(run, space.bytes(run), memory, space.address(run), rounded, bytes, of);
    } finally {
      lock.unlock();
    }
  }

  /**
   * Gives the block in hand or a free run to a buffer. What needs the Java heap comes first: if
   * that is full, it stays as it was. Under the lock.
   */
  private Face lend(ElasticCache cache, int run, long bytes, long rounded, OpenStream of) {
    CachedBlock[] block = new CachedBlock[1];
    int kind = Spaces.kind(rounded);
    Face buffer = prepare(cache, kind, run, bytes, of, block);
    CachedBlock last = freed.takeOutOfHand();
    if (last == null) {
      spaces.of(kind).take(run, Spaces.units(rounded));
    } else {
      cache.live--;
      books.give(last.requestedBytes, rounded);
    }
    enter(cache, block[0], rounded);
    block[0].opened(); // last: what is listed is found when it is forgotten
    return buffer;
  }

  private Face prepare(
      ElasticCache cache, int kind, int run, long bytes, OpenStream of, CachedBlock[] block) {
    long address = spaces.of(kind).address(run);
    Face buffer = memory.faces().cut(memory, address - memory.address(), bytes, of);
    block[0] = CachedBlock.lend(buffer, cache, run, memory, address, bytes, of);
    live[kind].put(run, block[0]);
    return buffer;
  }

  private void enter(ElasticCache cache, CachedBlock block, long rounded) {
    cache.live++;
    books.take(block.requestedBytes, rounded);
    cap.use(books.requestedBytes);
  }

  void giveOrLeave(CachedBlock block) {
    if (block.stripe != null) {
      freed.giveToStripe(block);
    } else if (lock.tryLock()) {
      try {
        freed.hold(block);
      } finally {
        lock.unlock();
      }
    } else {
      freed.leave(block);
    }
  }

  /** Does what threads left to be done under the lock. */
  private void catchUp() {
    freed.giveNow();
    moves.endLeft();
  }

  /** The same, with what the front of a cache has. */
  private void recall(ElasticCache cache) {
    catchUp();
    boolean _ = freed.recall(cache);
  }

  /** Whether more is mapped for a block before what is free elsewhere is brought together. */
  boolean leavesApart(long rounded) {
    return locked(() -> freed.leavesApart(rounded) ? 1 : 0) != 0;
  }

  /** The driver has no more to map. */
  void refused() {
    lock.lock();
    cap.refused();
    lock.unlock();
  }

  /** The same with all fronts, so that all that is free is in sight. */
  private void gather() {
    freed.giveAll();
    moves.endLeft();
  }

  /** What there is no room for in the Java heap now is given with a later call. */
  private void give(CachedBlock block, long time) {
    if (over) {
      return;
    }
    ElasticCache cache = (ElasticCache) block.arena;
    if (block.stripe != null) {
      freed.giveToStripe(block);
      return;
    }
    long rounded = block.blockBytes();
    int kind = Spaces.kind(rounded);
    try {
      spaces.give(cache, kind, block.block, time);
    } catch (OutOfMemoryError e) {
      freed.leave(block);
      return;
    }
    live[kind].put(block.block, null);
    books.give(block.requestedBytes, rounded);
  }

  /** Plans to map memory for a block; null if there are no addresses, or its cache has ended. */
  @Nullable Plan plan(Request request) {
    ElasticCache cache = (ElasticCache) request.arena();
    long units = Spaces.units(request.rounded());
    Space space = spaces.of(Spaces.kind(request.rounded()));
    lock.lock();
    try {
      freed.giveFor(request.rounded());
      moves.endLeft();
      Place place = over || cache.hasEnded() ? new Place() : space.place(units, cache.tag);
      if (!place.isFound()) {
        return null;
      }
      Plan plan = new Plan(cache, space.begin(place, units), place.cost << Space.UNIT_SHIFT);
      cache.live++;
      moves.begin();
      try {
        long requested = freed.requestedBytes() + request.bytes();
        plan.victims = carveNow(cap.toMove(plan.bytes, requested, held), OptionalLong.empty());
        return plan;
      } catch (OutOfMemoryError e) {
        moves.abort(plan);
        throw e;
      }
    } finally {
      lock.unlock();
    }
  }

  private @Nullable Victim carveNow(long wantedBytes, OptionalLong idleNanos) {
    Victim first = spaces.carve(wantedBytes, idleNanos);
    for (Victim victim = first; victim != null; victim = victim.next) {
      moves.begin();
      held.leaveForGood(victim.bytes);
      cap.moved(victim.pieces, freed.allocations());
    }
    return first;
  }

  /**
   * Takes memory out to be unmapped.
   *
   * @param idleNanos how long it was free; any time if empty
   * @return the first of a list; null if there is none
   */
  @Nullable Victim carve(long wantedBytes, OptionalLong idleNanos) {
    lock.lock();
    try {
      gather();
      return carveNow(over ? 0 : Math.min(wantedBytes, STEP_BYTES), idleNanos);
    } finally {
      lock.unlock();
    }
  }

  void unmapped(Victim victim) {
    victim.unmapped();
    restore(victim);
    held.freed(victim.bytes);
  }

  /** If it could not be unmapped, it is free again. */
  void restore(Victim victim) {
    lock.lock();
    try {
      moves.end(victim);
    } finally {
      lock.unlock();
    }
  }

  /** Nothing is mapped. */
  void abort(Plan plan) {
    lock.lock();
    try {
      moves.abort(plan);
    } finally {
      lock.unlock();
    }
  }

  /** All is mapped: the block; null if the pool has ended. Else nothing is changed. */
  @Nullable Face publish(Plan plan, Request request) {
    Growth growth = plan.growth;
    ElasticCache cache = plan.cache;
    lock.lock();
    try {
      if (over) {
        return null;
      }
      CachedBlock[] block = new CachedBlock[1];
      int kind = Spaces.kind(request.rounded());
      Face buffer;
      try {
        buffer = prepare(cache, kind, growth.block(), request.bytes(), request.stream(), block);
        growth.space.publish(growth);
      } catch (RuntimeException | Error e) {
        live[kind].put(growth.block(), null);
        throw e;
      }
      held.enterArena(plan.bytes);
      moves.end(plan);
      enter(cache, block[0], request.rounded());
      cap.use(freed.requestedBytes());
      block[0].opened();
      return buffer;
    } finally {
      lock.unlock();
    }
  }

  /** Whether the collector has found a buffer of a block that was not taken back yet. */
  boolean hasForgotten(Collection<ElasticCache> caches) {
    return live[0].hasForgotten(lock)
        || live[1].hasForgotten(lock)
        || caches.stream().anyMatch(ElasticCache::hasForgottenInFront);
  }

  /** Ends all, and gives the blocks in use. */
  List<CachedBlock> end() {
    List<CachedBlock> all = new ArrayList<>();
    lock.lock();
    try {
      over = true;
      freed.endFronts(all);
      for (LiveBlocks blocks : live) {
        blocks.forEach(all::add);
        blocks.clear();
      }
      books.give(books.requestedBytes, books.usedBytes);
      books.usedBlocks = 0;
    } finally {
      lock.unlock();
    }
    return all;
  }

  /** Ends if nothing is mapped, as all is that is in use; whether that is so. */
  boolean endIfEmpty() {
    return locked(() -> {
      gather(); // what ended when the Java heap was full may be all that is left
      over |= moves.isNone() && spaces.mappedBytes() == 0;
      return over ? 1 : 0;
    })
        != 0;
  }

  /** Whether no thread maps or moves memory, of which a part may be left over. */
  boolean isStill() {
    return locked(() -> moves.isNone() ? 1 : 0) != 0;
  }

  boolean isOver() {
    return locked(() -> over ? 1 : 0) != 0;
  }

  /** The numbers of this moment. */
  HeapCensus count(Iterable<ElasticCache> caches) {
    lock.lock();
    try {
      gather();
      HeapCensus census = new HeapCensus();
      if (!over) {
        spaces.count(census);
      }
      for (ElasticCache cache : caches) {
        census.add(freeBytes(cache), cache.stream.isForGraphs());
      }
      freed.count(census);
      census.pieces = window.pieces.count();
      census.pageBytes = window.paging().unit();
      census.movedPieces = cap.movedPieces();
      return census;
    } finally {
      lock.unlock();
    }
  }

  long allocations() {
    return locked(freed::allocations);
  }

  long largestPiece() {
    return locked(cap::largestPiece);
  }

  /** Bytes that are in no block. */
  long cachedBytes() {
    return locked(() -> {
      gather();
      return Math.max(0, held.held() - books.usedBytes);
    });
  }

  void resetPeak() {
    long _ = locked(books::resetPeak);
  }

  private long locked(LongSupplier work) {
    lock.lock();
    try {
      return work.getAsLong();
    } finally {
      lock.unlock();
    }
  }

  /** Compares the books with what is here and mapped. */
  void assertConsistent() {
    lock.lock();
    try {
      if (over) {
        return;
      }
      spaces.assertValid();
      boolean _ =
          held.assertConsistent(spaces.mappedBytes(), window.pieces::mappedBytes, () -> true);
    } finally {
      lock.unlock();
    }
  }
}

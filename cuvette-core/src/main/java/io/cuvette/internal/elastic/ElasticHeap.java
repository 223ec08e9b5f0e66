package io.cuvette.internal.elastic;

import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.index.SpinLock;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.paged.Window;
import io.cuvette.internal.pool.Budget;
import io.cuvette.internal.space.AgeList;
import io.cuvette.internal.space.Growth;
import io.cuvette.internal.space.Place;
import io.cuvette.internal.space.Space;
import io.cuvette.internal.space.Victim;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.LiveBlocks;
import io.cuvette.internal.streamcache.Request;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.function.Consumer;
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
  private final LeftFrees remote = new LeftFrees();
  private final Consumer<CachedBlock> giving = this::give;
  private final Cap cap = new Cap();
  private long sequence;
  private final ElasticBooks books = new ElasticBooks();

  /** Places and pieces that threads are mapping and unmapping. */
  private int moving;

  /** Those of them that nobody is at any more: the Java heap was too full to end them. */
  private @Nullable Plan plans;

  private @Nullable Victim victims;

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
    this.spaces = new Spaces(memory, smallBytes, window.pieces, clock);
  }

  /** A tag that nobody has. */
  int newTag() {
    lock.lock();
    try {
      return spaces.newTag();
    } finally {
      lock.unlock();
    }
  }

  /** Ends a cache that has nothing; false if it has, or has ended. */
  boolean endIfEmpty(ElasticCache cache) {
    lock.lock();
    try {
      drainRemote();
      if (over || cache.live != 0 || freeBytes(cache) > 0) {
        return false;
      }
      cache.live = Integer.MIN_VALUE; // it takes nothing more
      spaces.endTag(cache.tag);
      return true;
    } finally {
      lock.unlock();
    }
  }

  /** The free bytes that belong to a stream. */
  long freeBytesOf(ElasticCache cache) {
    lock.lock();
    try {
      drainRemote();
      return freeBytes(cache);
    } finally {
      lock.unlock();
    }
  }

  private long freeBytes(ElasticCache cache) {
    return cache.hasEnded() ? 0 : spaces.freeBytes(cache.tag);
  }

  /** What {@link #done} is called with for all that was freed so far. */
  long sequence() {
    lock.lock();
    try {
      drainRemote();
      return sequence;
    } finally {
      lock.unlock();
    }
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

  /** A free block; null if none fits. */
  @Nullable Face take(ElasticCache cache, long bytes, long rounded, OpenStream of) {
    lock.lock();
    try {
      drainRemote();
      int kind = Spaces.kind(rounded);
      int run =
          over || cache.hasEnded()
              ? Space.NONE
              : spaces.of(kind).find(Spaces.units(rounded), cache.tag);
      return run == Space.NONE ? null : lend(cache, kind, run, bytes, rounded, of);
    } finally {
      lock.unlock();
    }
  }

  /** What needs the Java heap comes first: if that is full, the run stays free. Under the lock. */
  private Face lend(
      ElasticCache cache, int kind, int run, long bytes, long rounded, OpenStream of) {
    CachedBlock[] block = new CachedBlock[1];
    Face buffer = prepare(cache, kind, run, bytes, of, block);
    spaces.of(kind).take(run, Spaces.units(rounded));
    count(cache, bytes, rounded);
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

  private void count(ElasticCache cache, long bytes, long rounded) {
    cache.live++;
    books.take(bytes, rounded);
    cap.use(books.requestedBytes);
  }

  void giveOrLeave(CachedBlock block) {
    if (lock.tryLock()) {
      try {
        drainRemote();
        give(block);
      } finally {
        lock.unlock();
      }
    } else {
      remote.leave(block);
    }
  }

  /** Does what threads left to be done under the lock. */
  private void drainRemote() {
    remote.takeAll(giving);
    if (plans != null || victims != null) {
      endLeft();
    }
  }

  private void endLeft() {
    Plan plan = plans;
    plans = null;
    for (Plan next; plan != null; plan = next) {
      next = plan.next;
      end(plan);
    }
    Victim victim = victims;
    victims = null;
    for (Victim next; victim != null; victim = next) {
      next = victim.next;
      end(victim);
    }
  }

  /** What there is no room for in the Java heap now is given with a later call. */
  private void give(CachedBlock block) {
    if (over) {
      return;
    }
    ElasticCache cache = (ElasticCache) block.arena;
    long rounded = block.blockBytes();
    int kind = Spaces.kind(rounded);
    try {
      spaces.of(kind).give(block.block, cache.tagOfFree(), sequence + 1, AgeList.NOW);
    } catch (OutOfMemoryError e) {
      remote.leave(block);
      return;
    }
    sequence++;
    live[kind].put(block.block, null);
    cache.live--;
    books.give(block.requestedBytes, rounded);
  }

  /** Plans to map memory for a block; null if there are no addresses, or its cache has ended. */
  @Nullable Plan plan(Request request) {
    ElasticCache cache = (ElasticCache) request.arena();
    long units = Spaces.units(request.rounded());
    Space space = spaces.of(Spaces.kind(request.rounded()));
    lock.lock();
    try {
      drainRemote();
      Place place = over || cache.hasEnded() ? new Place() : space.place(units, cache.tag);
      if (!place.isFound()) {
        return null;
      }
      long bytes = place.cost << Space.UNIT_SHIFT;
      Plan plan = new Plan(cache, space.begin(place, units), bytes);
      cache.live++;
      moving++;
      try {
        plan.victims = carveNow(bytesToMove(bytes, request.bytes()), OptionalLong.empty());
        return plan;
      } catch (OutOfMemoryError e) {
        end(plan);
        throw e;
      }
    } finally {
      lock.unlock();
    }
  }

  /** How many of the bytes to be mapped must come from elsewhere. */
  private long bytesToMove(long bytes, long requested) {
    long room = Math.max(0, cap.room(books.requestedBytes + requested, held.held()));
    return bytes == 0 ? 0 : bytes - Math.min(held.room(), room);
  }

  private @Nullable Victim carveNow(long wantedBytes, OptionalLong idleNanos) {
    Victim first = spaces.carve(wantedBytes, idleNanos);
    for (Victim victim = first; victim != null; victim = victim.next) {
      moving++;
      held.leaveForGood(victim.bytes);
      cap.moved(victim.pieces, books.allocations);
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
      drainRemote();
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
      end(victim);
    } finally {
      lock.unlock();
    }
  }

  /** What there is no room for in the Java heap now is done with a later call. */
  private void end(Victim victim) {
    try {
      if (!over) {
        victim.end();
      }
    } catch (OutOfMemoryError e) {
      victim.next = victims;
      victims = victim;
      return;
    }
    moving--;
    if (!over && !victim.isUnmapped()) {
      held.leaveForGood(-victim.bytes);
    }
  }

  /** Nothing is mapped. */
  void abort(Plan plan) {
    lock.lock();
    try {
      end(plan);
    } finally {
      lock.unlock();
    }
  }

  /** The same for a place. */
  private void end(Plan plan) {
    try {
      if (!over) {
        plan.growth.abort();
      }
    } catch (OutOfMemoryError e) {
      plan.next = plans;
      plans = plan;
      return;
    }
    moving--;
    plan.cache.live--;
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
      boolean isDone = false;
      Face buffer;
      try {
        buffer = prepare(cache, kind, growth.block(), request.bytes(), request.stream(), block);
        growth.space.publish(growth);
        isDone = true;
      } finally {
        if (!isDone) {
          live[kind].put(growth.block(), null);
        }
      }
      held.enterArena(plan.bytes);
      moving--;
      cache.live--;
      count(cache, request.bytes(), request.rounded());
      block[0].opened();
      return buffer;
    } finally {
      lock.unlock();
    }
  }

  /** Whether the collector has found a buffer of a block that was not taken back yet. */
  boolean hasForgotten() {
    return live[0].hasForgotten(lock) || live[1].hasForgotten(lock);
  }

  /** Ends all, and gives the blocks in use. */
  List<CachedBlock> end() {
    List<CachedBlock> all = new ArrayList<>();
    lock.lock();
    try {
      over = true;
      for (LiveBlocks blocks : live) {
        blocks.forEach(all::add);
        blocks.clear();
      }
    } finally {
      lock.unlock();
    }
    return all;
  }

  /** Ends if nothing is mapped nor taken; whether that is so. */
  boolean endIfEmpty() {
    lock.lock();
    try {
      drainRemote();
      over |= books.usedBlocks == 0 && moving == 0 && spaces.mappedBytes() == 0;
      return over;
    } finally {
      lock.unlock();
    }
  }

  boolean isOver() {
    lock.lock();
    try {
      return over;
    } finally {
      lock.unlock();
    }
  }

  /** The numbers of this moment. */
  ElasticCensus count(Iterable<ElasticCache> caches) {
    lock.lock();
    try {
      drainRemote();
      ElasticCensus census = new ElasticCensus();
      spaces.count(census);
      for (ElasticCache cache : caches) {
        census.add(freeBytes(cache), cache.stream.isForGraphs());
      }
      books.write(census);
      census.pieces = window.pieces.count();
      census.pageBytes = window.paging().unit();
      census.movedPieces = cap.movedPieces();
      return census;
    } finally {
      lock.unlock();
    }
  }

  long allocations() {
    lock.lock();
    try {
      return books.allocations;
    } finally {
      lock.unlock();
    }
  }

  long largestPiece() {
    lock.lock();
    try {
      return cap.largestPiece();
    } finally {
      lock.unlock();
    }
  }

  /** Bytes that are in no block. */
  long cachedBytes() {
    lock.lock();
    try {
      return Math.max(0, held.held() - books.usedBytes);
    } finally {
      lock.unlock();
    }
  }

  void resetPeak() {
    lock.lock();
    try {
      books.resetPeak();
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
      drainRemote();
      spaces.assertValid();
      boolean _ =
          held.assertConsistent(
              spaces.mappedBytes(),
              () -> moving == 0 ? window.pieces.mappedBytes() : held.held(),
              () -> true);
    } finally {
      lock.unlock();
    }
  }
}

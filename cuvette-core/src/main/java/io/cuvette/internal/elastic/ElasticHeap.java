package io.cuvette.internal.elastic;

import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.index.SpinLock;
import io.cuvette.internal.order.OpenStream;
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
import java.util.BitSet;
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
  /** Blocks below this size are in addresses of their own, so that no large one lies among them. */
  static final long SMALL_BYTES = 64L << 10;

  private static final long STEP_BYTES = 256L << 20;

  private final Memory memory;
  private final Window window;
  private final Budget held;
  private final SpinLock lock = new SpinLock();

  /** The addresses of small blocks, and of the others. */
  private final Space[] spaces;

  private final LiveBlocks[] live = {new LiveBlocks(), new LiveBlocks()};
  private final BitSet tags = new BitSet();
  private final LeftFrees remote = new LeftFrees();
  private final Consumer<CachedBlock> giving = this::give;
  private final Cap cap = new Cap();
  private long sequence;
  private final ElasticBooks books = new ElasticBooks();

  /** Places and pieces that threads are mapping and unmapping. */
  private int moving;

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
    long page = window.paging().unit();
    long base = memory.address();
    this.spaces =
        new Space[] {
          new Space(base, smallBytes, page, clock),
          new Space(base + smallBytes, memory.byteSize() - smallBytes, page, clock)
        };
    tags.set(Space.DONE);
  }

  private static int kind(long rounded) {
    return rounded < SMALL_BYTES ? 0 : 1;
  }

  /** A tag that nobody has. */
  int newTag() {
    lock.lock();
    try {
      int tag = tags.nextClearBit(0);
      for (Space space : spaces) {
        space.addTag(tag);
      }
      tags.set(tag);
      return tag;
    } finally {
      lock.unlock();
    }
  }

  /** Ends a cache that has nothing; false if it has, or has ended. */
  boolean endIfEmpty(ElasticCache cache) {
    lock.lock();
    try {
      drainRemote();
      if (over || cache.live > 0 || freeBytes(cache) > 0) {
        return false;
      }
      cache.live = Integer.MIN_VALUE; // it takes nothing more
      tags.clear(cache.tag);
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
    return (spaces[0].freeUnits(cache.tag) + spaces[1].freeUnits(cache.tag)) << Space.UNIT_SHIFT;
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
      for (Space space : spaces) {
        space.done(cache.tag, until);
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
      int kind = kind(rounded);
      int run = over || cache.live < 0 ? Space.NONE : spaces[kind].find(units(rounded), cache.tag);
      return run == Space.NONE ? null : lend(cache, kind, run, bytes, rounded, of);
    } finally {
      lock.unlock();
    }
  }

  private static long units(long rounded) {
    return rounded >>> Space.UNIT_SHIFT;
  }

  /** What needs the Java heap comes first: if that is full, the run stays free. Under the lock. */
  private Face lend(
      ElasticCache cache, int kind, int run, long bytes, long rounded, OpenStream of) {
    CachedBlock[] block = new CachedBlock[1];
    Face buffer = prepare(cache, kind, run, bytes, of, block);
    spaces[kind].take(run, units(rounded));
    count(cache, bytes, rounded);
    block[0].opened(); // last: what is listed is found when it is forgotten
    return buffer;
  }

  private Face prepare(
      ElasticCache cache, int kind, int run, long bytes, OpenStream of, CachedBlock[] block) {
    long address = spaces[kind].address(run);
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

  private void drainRemote() {
    remote.takeAll(giving);
  }

  /** What there is no room for in the Java heap now is given with a later call. */
  private void give(CachedBlock block) {
    if (over) {
      return;
    }
    ElasticCache cache = (ElasticCache) block.arena;
    long rounded = block.blockBytes();
    int kind = kind(rounded);
    try {
      spaces[kind].give(block.block, cache.tagOfFree(), sequence + 1, AgeList.NOW);
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
    long units = units(request.rounded());
    Space space = spaces[kind(request.rounded())];
    lock.lock();
    try {
      drainRemote();
      Place place = over || cache.live < 0 ? new Place() : space.place(units, cache.tag);
      if (!place.isFound()) {
        return null;
      }
      Growth growth = space.begin(place, units);
      Plan plan = null;
      try {
        plan = plan(growth, place.cost << Space.UNIT_SHIFT, request.bytes());
        cache.live++;
        moving++;
        return plan;
      } finally {
        if (plan == null) {
          space.abort(growth);
        }
      }
    } finally {
      lock.unlock();
    }
  }

  private Plan plan(Growth growth, long bytes, long requested) {
    growth.space.pieces.reserve(growth.end());
    long room = Math.max(0, cap.room(books.requestedBytes + requested, held.held()));
    long wanted = bytes == 0 ? 0 : bytes - Math.min(held.room(), room);
    return new Plan(growth, bytes, carveNow(wanted, OptionalLong.empty()));
  }

  private List<Victim> carveNow(long wantedBytes, OptionalLong idleNanos) {
    List<Victim> victims = Victim.carve(spaces, wantedBytes, idleNanos);
    for (Victim victim : victims) {
      moving++;
      held.leaveForGood(victim.bytes());
      cap.moved(victim.pieces(), books.allocations);
    }
    return victims;
  }

  /**
   * Takes memory out to be unmapped.
   *
   * @param idleNanos how long it was free; any time if empty
   */
  List<Victim> carve(long wantedBytes, OptionalLong idleNanos) {
    lock.lock();
    try {
      drainRemote();
      return carveNow(over ? 0 : Math.min(wantedBytes, STEP_BYTES), idleNanos);
    } finally {
      lock.unlock();
    }
  }

  void unmapped(Victim victim) {
    lock.lock();
    try {
      moving--;
      if (!over) {
        victim.space().unmapped(victim);
      }
    } finally {
      lock.unlock();
    }
    held.freed(victim.bytes());
  }

  /** It could not be unmapped, and is free again. */
  void restore(Victim victim) {
    lock.lock();
    try {
      moving--;
      if (!over) {
        victim.space().restore(victim);
        held.leaveForGood(-victim.bytes());
      }
    } finally {
      lock.unlock();
    }
  }

  /** Nothing is mapped. */
  void abort(ElasticCache cache, Growth growth) {
    lock.lock();
    try {
      moving--;
      cache.live--;
      if (!over) {
        growth.space.abort(growth);
      }
    } finally {
      lock.unlock();
    }
  }

  /** All is mapped: the block; null if the pool has ended. Else nothing is changed. */
  @Nullable Face publish(Plan plan, Request request) {
    Growth growth = plan.growth();
    ElasticCache cache = (ElasticCache) request.arena();
    lock.lock();
    try {
      if (over) {
        return null;
      }
      CachedBlock[] block = new CachedBlock[1];
      int kind = kind(request.rounded());
      boolean isDone = false;
      Face buffer;
      try {
        long _ = growth.eachHole((at, bytes) -> notePieces(growth.space, at, bytes));
        buffer = prepare(cache, kind, growth.block(), request.bytes(), request.stream(), block);
        growth.space.publish(growth);
        isDone = true;
      } finally {
        if (!isDone) {
          live[kind].put(growth.block(), null);
          long _ = growth.eachHole(growth.space.pieces::remove);
        }
      }
      held.enterArena(plan.bytes());
      moving--;
      cache.live--;
      count(cache, request.bytes(), request.rounded());
      block[0].opened();
      return buffer;
    } finally {
      lock.unlock();
    }
  }

  private long notePieces(Space space, long at, long bytes) {
    window.pieces(at, bytes).forEach(space.pieces::add);
    return bytes;
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
      over |= books.usedBlocks == 0 && moving == 0 && mappedBytes() == 0;
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

  private long mappedBytes() {
    return (spaces[0].mappedUnits() + spaces[1].mappedUnits()) << Space.UNIT_SHIFT;
  }

  /** The numbers of this moment. */
  ElasticCensus count(Iterable<ElasticCache> caches) {
    lock.lock();
    try {
      drainRemote();
      ElasticCensus census = new ElasticCensus();
      for (Space space : spaces) {
        census.add(space);
      }
      for (ElasticCache cache : caches) {
        census.add(freeBytes(cache), cache.stream.isForGraphs());
      }
      books.write(census);
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
      for (Space space : spaces) {
        space.assertValid();
      }
      boolean _ =
          held.assertConsistent(
              mappedBytes(), () -> moving == 0 ? window.mappedBytes() : held.held(), () -> true);
    } finally {
      lock.unlock();
    }
  }
}

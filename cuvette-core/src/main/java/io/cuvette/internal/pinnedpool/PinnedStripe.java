package io.cuvette.internal.pinnedpool;

import io.cuvette.internal.base.SpinLock;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.lifetime.ReturnStack;
import io.cuvette.internal.order.OpenStream;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The chunks of a store that some threads took last, cached ones by size class, last in first out,
 * and what is counted of them. Other threads leave what they free on a stack, and take neither its
 * lock nor its lines. Thread-safe; methods that say so are called under the lock.
 */
final class PinnedStripe {
  private static final int USED_BYTES = 0;
  private static final int USED_BLOCKS = 1;
  private static final int FREE_BYTES = 2;
  private static final int FREE_BLOCKS = 3;
  private static final int REQUESTED_BYTES = 4;
  private static final int PEAK_USED_BYTES = 5;
  private static final int TAKES = 6;
  private static final int ALLOCATIONS = 7;
  private static final int NUMBERS = 8;

  /**
   * Where threads share a store, a chunk of so many classes above is taken before one of another
   * stripe: half as large again at most, from 4 KiB on. Threads miss a quarter as often then, and
   * hold a quarter less in all.
   */
  private static final int CLOSE = 3;

  /** So many longs are 128 bytes. */
  private static final int APART = 16;

  /** Its place among the stripes, which is also the order in which several are locked. */
  final int index;

  private final PinnedStripes of;
  private final SpinLock lock = new SpinLock();
  private final ReturnStack returned = new ReturnStack();

  /** The last one cached of each size class. */
  private final @Nullable PinnedChunk[] cached = new PinnedChunk[SizeClasses.COUNT];

  /** In the middle of an array: the collector moves objects of other stripes next to this one. */
  private final long[] numbers = new long[APART + NUMBERS + APART];

  PinnedStripe(PinnedStripes of, int index) {
    this.of = of;
    this.index = index;
  }

  /** Takes the lock; whoever has to wait for it sees that more stripes are wanted. */
  private void enter() {
    if (!lock.tryLock()) {
      of.met();
      lock.lock();
    }
  }

  void lock() {
    lock.lock();
  }

  void unlock() {
    lock.unlock();
  }

  /**
   * Lends a cached chunk to a new buffer; null if there is none. What needs the Java heap comes
   * first: if that is full, the chunk stays cached.
   */
  @Nullable Face lend(int sizeClass, PinnedPoolCore pool, long bytes, OpenStream stream) {
    enter();
    try {
      PinnedChunk chunk = closest(sizeClass);
      if (chunk == null) {
        return null;
      }
      Memory memory = chunk.memory;
      Face buffer = memory.faces().cut(memory, 0, bytes, stream);
      PinnedBlock block = new PinnedBlock(buffer, pool, chunk, this, bytes);
      memory.faces().own(buffer, block);
      pop(chunk);
      count(TAKES, 1);
      hold(chunk);
      lent(block);
      block.opened(); // last: what is listed is found when it is forgotten
      return buffer;
    } finally {
      lock.unlock();
    }
  }

  /** Takes a cached chunk in hand; null if there is none. */
  @Nullable PinnedChunk take(int sizeClass) {
    enter();
    try {
      PinnedChunk chunk = closest(sizeClass);
      if (chunk != null) {
        pop(chunk);
        count(TAKES, 1);
        hold(chunk);
      }
      return chunk;
    } finally {
      lock.unlock();
    }
  }

  /** Has a new chunk in the caller's hands; false if the pool was torn down. */
  boolean adopt(PinnedChunk chunk) {
    enter();
    try {
      if (of.isOver()) {
        return false;
      }
      of.held().enterArena(chunk.bytes());
      of.held().grown();
      chunk.isInStore = true;
      hold(chunk);
      return true;
    } finally {
      lock.unlock();
    }
  }

  /** Removes a cached chunk, to be freed to upstream; null if there is none. */
  @Nullable PinnedChunk remove(int sizeClass) {
    lock.lock();
    try {
      PinnedChunk chunk = bring(sizeClass);
      if (chunk != null) {
        chunk.isInStore = false;
        of.held().leaveForGood(chunk.bytes());
      }
      return chunk;
    } finally {
      lock.unlock();
    }
  }

  /** Lends the chunk in hand to a buffer; false if the pool was torn down. */
  boolean lend(PinnedBlock block) {
    lock.lock();
    try {
      if (of.isOver()) {
        return false;
      }
      lent(block);
      return true;
    } finally {
      lock.unlock();
    }
  }

  /** Puts back what is in hand. */
  void putBack(PinnedChunk chunk) {
    lock.lock();
    try {
      free(chunk);
    } finally {
      lock.unlock();
    }
  }

  /** Takes a block back whose buffer was closed, from any thread. */
  void give(PinnedBlock block) {
    if (of.isMine(this) && lock.tryLock()) {
      try {
        giveNow(block);
      } finally {
        lock.unlock();
      }
    } else {
      returned.push(block);
    }
  }

  /** Whether a look under the lock is worth it: what was freed before is in sight. */
  boolean mayHave(int sizeClass) {
    return cached[sizeClass] != null || !returned.isEmpty();
  }

  /** Takes in what other threads have freed. Under the lock. */
  void drain() {
    PinnedBlock block = (PinnedBlock) returned.takeAll();
    while (block != null) {
      PinnedBlock next = (PinnedBlock) block.next;
      block.next = null;
      giveNow(block);
      block = next;
    }
  }

  /** Takes a cached chunk out, which is counted nowhere then. Under the lock. */
  @Nullable PinnedChunk bring(int sizeClass) {
    PinnedChunk chunk = first(sizeClass);
    if (chunk != null) {
      pop(chunk);
    }
    return chunk;
  }

  /** Under the lock. */
  void push(PinnedChunk chunk) {
    chunk.next = cached[chunk.sizeClass];
    cached[chunk.sizeClass] = chunk;
    count(FREE_BYTES, chunk.bytes());
    count(FREE_BLOCKS, 1);
  }

  /** The chunk to lend; one that is larger, but close, if threads share the store. */
  private @Nullable PinnedChunk closest(int sizeClass) {
    PinnedChunk chunk = first(sizeClass);
    if (chunk == null && of.areSeveral() && !of.isOver()) {
      int last = Math.min(sizeClass + CLOSE, SizeClasses.COUNT - 1);
      for (int larger = sizeClass + 1; chunk == null && larger <= last; larger++) {
        chunk = cached[larger];
      }
    }
    return chunk;
  }

  private @Nullable PinnedChunk first(int sizeClass) {
    if (of.isOver()) {
      return null;
    }
    PinnedChunk chunk = cached[sizeClass];
    if (chunk == null && !returned.isEmpty()) {
      drain();
      chunk = cached[sizeClass];
    }
    return chunk;
  }

  private void pop(PinnedChunk first) {
    cached[first.sizeClass] = first.next;
    first.next = null;
    count(FREE_BYTES, -first.bytes());
    count(FREE_BLOCKS, -1);
  }

  private void hold(PinnedChunk chunk) {
    chunk.stripe = this;
    count(USED_BYTES, chunk.bytes());
    count(USED_BLOCKS, 1);
  }

  private void lent(PinnedBlock block) {
    block.chunk.lentTo = block;
    count(ALLOCATIONS, 1);
    count(REQUESTED_BYTES, block.requestedBytes);
    if (usedBytes() > peakUsedBytes()) {
      numbers[APART + PEAK_USED_BYTES] = usedBytes();
    }
  }

  private void giveNow(PinnedBlock block) {
    PinnedChunk chunk = block.chunk;
    if (!of.isOver() && chunk.lentTo == block) {
      chunk.lentTo = null;
      count(REQUESTED_BYTES, -block.requestedBytes);
      free(chunk);
    }
  }

  private void free(PinnedChunk chunk) {
    if (!of.isOver()) {
      count(USED_BYTES, -chunk.bytes());
      count(USED_BLOCKS, -1);
      push(chunk);
    }
  }

  /** Nothing is here any more. Under the lock. */
  void end() {
    PinnedBlock _ = (PinnedBlock) returned.takeAll();
    long peak = peakUsedBytes();
    long takes = takes();
    long allocations = allocations();
    Arrays.fill(numbers, 0);
    count(PEAK_USED_BYTES, peak);
    count(TAKES, takes);
    count(ALLOCATIONS, allocations);
  }

  private void count(int number, long more) {
    numbers[APART + number] += more;
  }

  // What is counted. Under the lock.

  long usedBytes() {
    return numbers[APART + USED_BYTES];
  }

  int usedBlocks() {
    return (int) numbers[APART + USED_BLOCKS];
  }

  long freeBytes() {
    return numbers[APART + FREE_BYTES];
  }

  int freeBlocks() {
    return (int) numbers[APART + FREE_BLOCKS];
  }

  long requestedBytes() {
    return numbers[APART + REQUESTED_BYTES];
  }

  long peakUsedBytes() {
    return numbers[APART + PEAK_USED_BYTES];
  }

  long takes() {
    return numbers[APART + TAKES];
  }

  long allocations() {
    return numbers[APART + ALLOCATIONS];
  }

  /** The bytes of all cached chunks, one by one. Under the lock. */
  long cachedBytes() {
    long bytes = 0;
    for (PinnedChunk first : cached) {
      for (PinnedChunk chunk = first; chunk != null; chunk = chunk.next) {
        bytes += chunk.bytes();
      }
    }
    return bytes;
  }
}

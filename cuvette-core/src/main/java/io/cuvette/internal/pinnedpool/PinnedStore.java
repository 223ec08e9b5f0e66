package io.cuvette.internal.pinnedpool;

import io.cuvette.PinnedPoolStats;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Spans;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.Loans.Loan;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.index.SizeClasses;
import io.cuvette.internal.index.SpinLock;
import io.cuvette.internal.pool.Budget;
import io.cuvette.internal.stream.PendingFrees;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * The chunks of a {@code PinnedMemoryPool} and their counts, under one short lock: cached ones by
 * size class, last in first out. Makes no driver call, and needs no Java heap under the lock.
 * Thread-safe.
 */
public final class PinnedStore {
  private final SpinLock lock = new SpinLock();
  private final Budget held;
  private final Spans spans = new Spans();

  /** From when upstream gave a chunk until it has it back. */
  private final Set<PinnedChunk> all = ConcurrentHashMap.newKeySet();

  /** The last one cached of each size class. */
  private final @Nullable PinnedChunk[] cached = new PinnedChunk[SizeClasses.COUNT];

  /** Whether the pool was torn down. */
  private boolean over;

  private long usedBytes;
  private int usedBlocks;
  private long freeBytes;
  private int freeBlocks;
  private long requestedBytes;
  private long peakUsedBytes;
  private long takes;
  private long allocations;
  private long growths;
  private long outOfMemories;

  public PinnedStore(long limitBytes) {
    this.held = new Budget(limitBytes);
  }

  /** What the limit counts. */
  public Budget held() {
    return held;
  }

  public static long blockBytes(int sizeClass) {
    return SizeClasses.classBytes(sizeClass);
  }

  /**
   * Takes memory in that upstream gave and whose bytes are reserved; it is in the caller's hands
   * then. Null if the pool was torn down.
   *
   * @throws IllegalStateException if a pool has some of it already
   */
  public @Nullable PinnedChunk add(Memory memory, int sizeClass) {
    Spans.Span span = spans.add(memory.address(), blockBytes(sizeClass), memory);
    Loan loan = null;
    PinnedChunk chunk = null;
    boolean added = false;
    try {
      loan = Block.lend(memory, span.bytes());
      chunk = new PinnedChunk(memory, sizeClass, loan);
      all.add(chunk);
      added = enter(chunk);
      return added ? chunk : null;
    } finally {
      if (!added) {
        forget(span, loan, chunk);
      }
    }
  }

  private boolean enter(PinnedChunk chunk) {
    lock.lock();
    try {
      if (over) {
        return false;
      }
      held.enterArena(chunk.bytes());
      held.grown();
      chunk.isInStore = true;
      countUsed(chunk, 1);
      growths++;
      return true;
    } finally {
      lock.unlock();
    }
  }

  private void forget(Spans.Span span, @Nullable Loan loan, @Nullable PinnedChunk chunk) {
    spans.remove(span);
    if (chunk != null) {
      all.remove(chunk);
    }
    if (loan != null) {
      loan.giveBack();
    }
  }

  /** Takes a cached chunk in hand; null if there is none. */
  public @Nullable PinnedChunk take(int sizeClass) {
    lock.lock();
    try {
      PinnedChunk chunk = pop(sizeClass);
      if (chunk != null) {
        countUsed(chunk, 1);
        takes++;
      }
      return chunk;
    } finally {
      lock.unlock();
    }
  }

  /** Removes a cached chunk, to be freed to upstream; null if there is none. */
  public @Nullable PinnedChunk remove(int sizeClass) {
    lock.lock();
    try {
      PinnedChunk chunk = pop(sizeClass);
      if (chunk != null) {
        chunk.isInStore = false;
        held.leaveForGood(chunk.bytes());
      }
      return chunk;
    } finally {
      lock.unlock();
    }
  }

  /** Upstream gets a chunk that was taken out; it counts as held until that has ended. */
  public void giveUp(PinnedChunk chunk) {
    spans.remove(chunk.loan.span); // first: upstream may give the same memory again at once
    try {
      chunk.loan.giveBack();
    } finally {
      held.freed(chunk.bytes());
      all.remove(chunk);
    }
  }

  private @Nullable PinnedChunk pop(int sizeClass) {
    PinnedChunk chunk = cached[sizeClass];
    if (chunk != null) {
      cached[sizeClass] = chunk.next;
      chunk.next = null;
      freeBytes -= chunk.bytes();
      freeBlocks--;
    }
    return chunk;
  }

  private void push(PinnedChunk chunk) {
    chunk.next = cached[chunk.sizeClass];
    cached[chunk.sizeClass] = chunk;
    freeBytes += chunk.bytes();
    freeBlocks++;
  }

  private void countUsed(PinnedChunk chunk, int sign) {
    usedBytes += sign * chunk.bytes();
    usedBlocks += sign;
  }

  /** Lends the chunk in hand to a buffer; false if the pool was torn down. */
  public boolean lend(PinnedBlock block) {
    lock.lock();
    try {
      if (over) {
        return false;
      }
      block.chunk.lentTo = block;
      allocations++;
      requestedBytes += block.requestedBytes;
      peakUsedBytes = Math.max(peakUsedBytes, usedBytes);
      return true;
    } finally {
      lock.unlock();
    }
  }

  /** Puts back what is in hand. */
  public void putBack(PinnedChunk chunk) {
    lock.lock();
    try {
      if (!over) {
        countUsed(chunk, -1);
        push(chunk);
      }
    } finally {
      lock.unlock();
    }
  }

  /** Takes a block back whose buffer was closed. */
  public void give(PinnedBlock block) {
    PinnedChunk chunk = block.chunk;
    lock.lock();
    try {
      if (!over && chunk.lentTo == block) {
        chunk.lentTo = null;
        requestedBytes -= block.requestedBytes;
        countUsed(chunk, -1);
        push(chunk);
      }
    } finally {
      lock.unlock();
    }
  }

  public void failed() {
    lock.lock();
    try {
      outOfMemories++;
    } finally {
      lock.unlock();
    }
  }

  /** How often memory was taken so far, from here or from upstream. */
  public long takes() {
    lock.lock();
    try {
      return takes + held.reservations();
    } finally {
      lock.unlock();
    }
  }

  /** Whether the collector has found a buffer that was not taken back yet. */
  public boolean hasForgotten() {
    for (PinnedChunk chunk : all) {
      PinnedBlock block = chunk.lentTo;
      if (block != null && block.isForgotten()) {
        return true;
      }
    }
    return false;
  }

  /** Lets nothing in any more and closes the buffers in use, for a pool that is torn down. */
  public void end(Failures failures) {
    lock.lock();
    try {
      over = true;
      usedBytes = 0;
      usedBlocks = 0;
      freeBytes = 0;
      freeBlocks = 0;
      requestedBytes = 0;
    } finally {
      lock.unlock();
    }
    for (PinnedChunk chunk : all) {
      PinnedBlock block = chunk.lentTo;
      if (block != null) {
        failures.run(block::abandon);
      }
    }
    held.end();
  }

  public PinnedPoolStats stats(PendingFrees<PinnedBlock> waiting) {
    lock.lock();
    try {
      long pending = Math.min(waiting.bytes(), usedBytes);
      int pendingBlocks = Math.min(waiting.blocks(), usedBlocks);
      long used = usedBytes - pending;
      long beingFreed = held.beingFreed();
      long free = freeBytes + pending + beingFreed;
      return new PinnedPoolStats(
          used,
          free,
          used + free,
          Math.max(0, requestedBytes - waiting.requestedBytes()),
          pending + beingFreed,
          usedBlocks - pendingBlocks,
          freeBlocks + pendingBlocks,
          peakUsedBytes,
          held.peak(),
          allocations,
          growths,
          outOfMemories,
          held.limit());
    } finally {
      lock.unlock();
    }
  }

  public void assertConsistent() {
    lock.lock();
    try {
      if (!over) {
        long bytes = 0;
        for (PinnedChunk chunk : all) {
          bytes += chunk.isInStore ? chunk.bytes() : 0;
        }
        require("used and cached", usedBytes + cachedBytes(), bytes);
        require("cached", freeBytes, cachedBytes());
        boolean _ = held.assertConsistent(bytes, spans::bytes, () -> true);
      }
    } finally {
      lock.unlock();
    }
  }

  private long cachedBytes() {
    long bytes = 0;
    for (PinnedChunk first : cached) {
      for (PinnedChunk chunk = first; chunk != null; chunk = chunk.next) {
        bytes += chunk.bytes();
      }
    }
    return bytes;
  }

  private static void require(String what, long counted, long found) {
    if (counted != found) {
      throw new AssertionError("%s: %d bytes (expected: %d)".formatted(what, counted, found));
    }
  }
}

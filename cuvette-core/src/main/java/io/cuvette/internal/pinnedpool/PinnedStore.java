package io.cuvette.internal.pinnedpool;

import io.cuvette.PinnedPoolStats;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Spans;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Loans.Loan;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.pending.PendingFrees;
import io.cuvette.internal.pool.Budget;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * The chunks of a {@code PinnedMemoryPool} and their counts, in stripes for the threads that use
 * them. Makes no driver call, and needs no Java heap to take back what is freed. Thread-safe.
 */
public final class PinnedStore {
  private final Budget held;
  private final PinnedStripes stripes;
  private final Spans spans = new Spans();

  /** From when upstream gave a chunk until it has it back. */
  private final Set<PinnedChunk> all = ConcurrentHashMap.newKeySet();

  private final AtomicLong growths = new AtomicLong();
  private final AtomicLong outOfMemories = new AtomicLong();

  public PinnedStore(long limitBytes) {
    this.held = new Budget(limitBytes);
    this.stripes = new PinnedStripes(held);
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
    PinnedStripe mine = stripes.mine(); // first: it may need Java heap
    Spans.Span span = spans.add(memory.address(), blockBytes(sizeClass), memory);
    Loan loan = null;
    PinnedChunk chunk = null;
    boolean added = false;
    try {
      loan = Block.lend(memory, span.bytes());
      chunk = new PinnedChunk(memory, sizeClass, loan, mine);
      all.add(chunk);
      added = mine.adopt(chunk);
      growths.addAndGet(added ? 1 : 0);
      return added ? chunk : null;
    } finally {
      if (!added) {
        forget(span, loan, chunk);
      }
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

  /** Lends a cached chunk to a new buffer; null if there is none. */
  @Nullable Face lend(int sizeClass, PinnedPoolCore pool, long bytes, OpenStream of) {
    PinnedStripe mine = stripes.mine();
    Face lent = mine.lend(sizeClass, pool, bytes, of);
    while (lent == null && stripes.bring(sizeClass, mine)) {
      lent = mine.lend(sizeClass, pool, bytes, of);
    }
    return lent;
  }

  /** Takes a cached chunk in hand; null if there is none. */
  public @Nullable PinnedChunk take(int sizeClass) {
    PinnedStripe mine = stripes.mine();
    PinnedChunk taken = mine.take(sizeClass);
    while (taken == null && stripes.bring(sizeClass, mine)) {
      taken = mine.take(sizeClass);
    }
    return taken;
  }

  /** Removes a cached chunk, to be freed to upstream; null if there is none. */
  public @Nullable PinnedChunk remove(int sizeClass) {
    return stripes.remove(sizeClass);
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

  /** Lends the chunk in hand to a buffer; false if the pool was torn down. */
  public boolean lend(PinnedBlock block) {
    return block.stripe.lend(block);
  }

  /** Puts back what is in hand. */
  public void putBack(PinnedChunk chunk) {
    chunk.stripe.putBack(chunk);
  }

  /** Takes a block back whose buffer was closed. */
  public void give(PinnedBlock block) {
    block.stripe.give(block);
  }

  public void failed() {
    outOfMemories.incrementAndGet();
  }

  /** How often memory was taken so far, from here or from upstream. */
  public long takes() {
    stripes.pause();
    try {
      return stripes.sum(PinnedStripe::takes) + held.reservations();
    } finally {
      stripes.resume();
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
    stripes.end();
    for (PinnedChunk chunk : all) {
      PinnedBlock block = chunk.lentTo;
      if (block != null) {
        failures.run(block::abandon);
      }
    }
    held.end();
  }

  public PinnedPoolStats stats(PendingFrees<PinnedBlock> waiting) {
    stripes.pause();
    try {
      long inUse = stripes.sum(PinnedStripe::usedBytes);
      int blocksInUse = (int) stripes.sum(PinnedStripe::usedBlocks);
      long pending = Math.min(waiting.bytes(), inUse);
      int pendingBlocks = Math.min(waiting.blocks(), blocksInUse);
      long used = inUse - pending;
      long beingFreed = held.beingFreed();
      long free = stripes.sum(PinnedStripe::freeBytes) + pending + beingFreed;
      long requested = stripes.sum(PinnedStripe::requestedBytes);
      return new PinnedPoolStats(
          used,
          free,
          used + free,
          Math.max(0, requested - waiting.requestedBytes()),
          pending + beingFreed,
          blocksInUse - pendingBlocks,
          (int) stripes.sum(PinnedStripe::freeBlocks) + pendingBlocks,
          Math.min(stripes.sum(PinnedStripe::peakUsedBytes), held.peak()),
          held.peak(),
          stripes.sum(PinnedStripe::allocations),
          growths.get(),
          outOfMemories.get(),
          held.limit());
    } finally {
      stripes.resume();
    }
  }

  public void assertConsistent() {
    stripes.pause();
    try {
      if (!stripes.isOver()) {
        long bytes = 0;
        for (PinnedChunk chunk : all) {
          bytes += chunk.isInStore ? chunk.bytes() : 0;
        }
        long cached = stripes.sum(PinnedStripe::cachedBytes);
        require("used and cached", stripes.sum(PinnedStripe::usedBytes) + cached, bytes);
        require("cached", stripes.sum(PinnedStripe::freeBytes), cached);
        boolean _ = held.assertConsistent(bytes, spans::bytes, () -> true);
      }
    } finally {
      stripes.resume();
    }
  }

  private static void require(String what, long counted, long found) {
    if (counted != found) {
      throw new AssertionError("%s: %d bytes (expected: %d)".formatted(what, counted, found));
    }
  }
}

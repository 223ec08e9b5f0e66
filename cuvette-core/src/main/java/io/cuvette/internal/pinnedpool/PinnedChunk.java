package io.cuvette.internal.pinnedpool;

import io.cuvette.internal.block.Loans.Loan;
import io.cuvette.internal.block.Memory;
import org.jspecify.annotations.Nullable;

/**
 * Page-locked memory that a pool holds from upstream, as a block of a size class. It is cached,
 * lent to a buffer, or in the hands of one thread. Guarded by the lock of the stripe that has it.
 */
public final class PinnedChunk {
  public final Memory memory;
  public final int sizeClass;

  /** By which the pool holds it. */
  public final Loan loan;

  /** The one that was cached before it. */
  public @Nullable PinnedChunk next;

  /** What it is lent to, which is reachable for the leak tracker by this. */
  public volatile @Nullable PinnedBlock lentTo;

  /** What counts it as used while it is in hand. */
  PinnedStripe stripe;

  /** Whether the store has it; else it comes from upstream, or goes there. */
  public boolean isInStore;

  PinnedChunk(Memory memory, int sizeClass, Loan loan, PinnedStripe stripe) {
    this.memory = memory;
    this.sizeClass = sizeClass;
    this.loan = loan;
    this.stripe = stripe;
  }

  public long bytes() {
    return loan.bytes();
  }
}

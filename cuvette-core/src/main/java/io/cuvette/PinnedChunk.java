package io.cuvette;

import io.cuvette.Loans.Loan;
import org.jspecify.annotations.Nullable;

/**
 * Page-locked memory that a pool holds from upstream, as a block of a size class. It is cached,
 * lent to a buffer, or in the hands of one thread. Guarded by the lock of its store.
 */
final class PinnedChunk {
  final Memory memory;
  final int sizeClass;

  /** By which the pool holds it. */
  final Loan loan;

  /** The one that was cached before it. */
  @Nullable PinnedChunk next;

  /** What it is lent to, which is reachable for the leak tracker by this. */
  volatile @Nullable PinnedBlock lentTo;

  /** Whether the store has it; else it comes from upstream, or goes there. */
  boolean isInStore;

  PinnedChunk(Memory memory, int sizeClass, Loan loan) {
    this.memory = memory;
    this.sizeClass = sizeClass;
    this.loan = loan;
  }

  long bytes() {
    return loan.bytes();
  }
}

package io.cuvette.internal.pool;

import io.cuvette.internal.base.BargingLock;
import io.cuvette.internal.base.Spans;
import io.cuvette.internal.base.Spans.Span;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.Loans.Loan;
import io.cuvette.internal.block.Memory;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The allocations that a pool holds from upstream, by number; no two of them overlap. Reading is
 * free of locks. Thread-safe.
 */
public final class Chunks {
  public static final int NONE = -1;

  private final BargingLock lock = new BargingLock();
  private volatile @Nullable Memory[] buffers = new Memory[16];

  /** The same allocations with what they are used for, and all their addresses in order. */
  private @Nullable Loan[] loans = new Loan[16];

  private final Spans all = new Spans();
  private int[] free = new int[16];
  private int freeCount;
  private int count;

  /** Whether all were removed, and none comes any more. */
  private boolean over;

  /**
   * Holds a chunk and remembers it; false, by a number below 0, if all were removed.
   *
   * @param bytes what the pool uses of it
   * @throws IllegalStateException if a pool has some of it already: it would be handed out twice
   */
  public int add(Memory buffer, long bytes) {
    lock.lock();
    try {
      if (over) {
        return NONE;
      }
      int chunk = freeCount > 0 ? free[freeCount - 1] : count;
      reserve(chunk);
      loans[chunk] = add(all.add(buffer.address(), bytes, buffer), buffer);
      if (chunk == count) {
        count++;
      } else {
        freeCount--;
      }
      @Nullable Memory[] current = buffers;
      current[chunk] = buffer;
      buffers = current;
      return chunk;
    } finally {
      lock.unlock();
    }
  }

  private Loan add(Span span, Memory buffer) {
    Loan loan = null;
    try {
      loan = Block.lend(buffer, span.bytes());
      return loan;
    } finally {
      if (loan == null) {
        all.remove(span);
      }
    }
  }

  /** Makes room for a chunk, and for its number once it is removed. */
  private void reserve(int chunk) {
    int room = loans.length;
    if (chunk == room) {
      free = Arrays.copyOf(free, room * 2);
      buffers = Arrays.copyOf(buffers, room * 2);
      loans = Arrays.copyOf(loans, room * 2);
    }
  }

  /**
   * A chunk.
   *
   * @throws IllegalStateException if the pool was torn down by another thread
   */
  public Memory get(int chunk) {
    @Nullable Memory[] all = buffers;
    Memory buffer = chunk < all.length ? all[chunk] : null;
    if (buffer == null) {
      throw hasEnded();
    }
    return buffer;
  }

  /** Takes a chunk out; null if all were removed. Allocates nothing in the Java heap. */
  public @Nullable Loan remove(int chunk) {
    lock.lock();
    try {
      if (over || chunk == NONE) {
        return null;
      }
      Loan loan = loan(chunk);
      buffers[chunk] = null;
      loans[chunk] = null;
      all.remove(loan.span);
      free[freeCount++] = chunk;
      return loan;
    } finally {
      lock.unlock();
    }
  }

  private Loan loan(int chunk) {
    Loan loan = loans[chunk];
    if (loan == null) {
      throw hasEnded();
    }
    return loan;
  }

  private static IllegalStateException hasEnded() {
    return new IllegalStateException("the memory pool is closed: its Cuda has ended");
  }

  /** Whether all were removed, at the end of the Cuda. */
  public boolean isOver() {
    lock.lock();
    try {
      return over;
    } finally {
      lock.unlock();
    }
  }

  /** The bytes of a chunk, as the pool uses them; 0 if all were removed. */
  public long bytes(int chunk) {
    lock.lock();
    try {
      Loan loan = over ? null : loans[chunk];
      return loan == null ? 0 : loan.bytes();
    } finally {
      lock.unlock();
    }
  }

  /** The bytes of all chunks, as the pool uses them. */
  public long bytes() {
    return all.bytes();
  }

  /** Removes all, for a pool that is torn down: nothing can be lent from them any more. */
  public void end() {
    lock.lock();
    try {
      over = true;
      buffers = new Memory[0];
      loans = new Loan[0];
      all.clear();
    } finally {
      lock.unlock();
    }
  }
}

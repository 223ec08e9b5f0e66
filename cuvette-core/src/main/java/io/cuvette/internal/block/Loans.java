package io.cuvette.internal.block;

import io.cuvette.internal.base.Spans;
import io.cuvette.internal.base.Spans.Span;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The parts of some memory that pools lend from, of which no two overlap, and its uses by code
 * outside of Java. Each holds the memory, so that nobody else frees it: who closes it meanwhile
 * leaves that to the last of them. Thread-safe.
 */
public final class Loans {
  private final Spans parts = new Spans();
  private final AtomicInteger open = new AtomicInteger();
  private final AtomicInteger foreign = new AtomicInteger();

  /** How many of those that hold the memory are pools, or code outside of Java. */
  public int open() {
    return open.get();
  }

  /** Whether code outside of Java uses the memory. */
  boolean isForeign() {
    return foreign.get() > 0;
  }

  /** Memory from upstream that a pool lends from until it gives it back. */
  public static final class Loan {
    public final Memory memory;
    public final Span span;
    private final Loans all;
    private final AtomicBoolean over = new AtomicBoolean();

    private Loan(Memory memory, Span span, Loans all) {
      this.memory = memory;
      this.span = span;
      this.all = all;
    }

    /** The bytes that the pool uses. */
    public long bytes() {
      return span.bytes();
    }

    /**
     * Frees the memory, or if it is a part of some, lets go of that. Once: a thread may be about it
     * when the pool is torn down.
     */
    public void giveBack() {
      if (!over.compareAndSet(false, true)) {
        return;
      }
      all.parts.remove(span); // first: upstream may give the same memory again at once
      all.open.decrementAndGet();
      Block block = memory.block();
      if (memory.isWhole()) {
        block.closeHeld();
      } else {
        block.unhold();
      }
    }
  }

  /**
   * Begins to hold memory that upstream gave.
   *
   * @param bytes what the pool uses of it
   * @throws IllegalStateException if a pool lends from it already, or it is closed
   */
  public Loan add(Memory memory, long bytes) {
    Span span = parts.add(memory.address(), bytes, memory);
    boolean added = false;
    try {
      Loan loan = new Loan(memory, span, this);
      memory.block().hold();
      open.incrementAndGet();
      added = true;
      return loan;
    } finally {
      if (!added) {
        parts.remove(span);
      }
    }
  }

  /**
   * Begins to hold memory that others than pools use.
   *
   * @return lets go of it
   * @throws IllegalStateException if it is closed
   */
  Runnable add(Memory memory) {
    foreign.incrementAndGet();
    open.incrementAndGet(); // first: who closes the memory waits for other holds
    boolean held = false;
    try {
      memory.block().hold();
      held = true;
    } finally {
      if (!held) {
        open.decrementAndGet();
        foreign.decrementAndGet();
      }
    }
    return () -> {
      open.decrementAndGet();
      foreign.decrementAndGet();
      memory.block().unhold();
    };
  }
}

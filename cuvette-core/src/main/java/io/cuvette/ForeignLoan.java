package io.cuvette;

import io.cuvette.internal.loan.MemoryLoan;
import java.util.Objects;

/**
 * Something that code outside of Java uses until it gives it back. Memory that is out stays where
 * it is: closing its buffer, its pool or the {@link Cuda} leaves its end to the last loan. A Cuda
 * that is closed while something of it is out rejects all operations at once, and lets go of its
 * memory and of the driver when the last loan is over.
 *
 * <p>Thread-safe.
 */
public final class ForeignLoan {
  private final MemoryLoan loan;

  private ForeignLoan(MemoryLoan loan) {
    this.loan = loan;
  }

  /**
   * {@return a loan of the memory of a buffer, or of a slice} When it is over, the memory is freed
   * after the work that its device has by then, whoever queued it.
   *
   * @param buffer the buffer
   * @throws IllegalStateException if the buffer or its Cuda is closed
   */
  public static ForeignLoan of(Buffer buffer) {
    Objects.requireNonNull(buffer, "buffer");
    return new ForeignLoan(MemoryLoan.of(BufferBase.base(buffer).memory()));
  }

  /**
   * {@return a loan of something else}
   *
   * @param end called once when it is over, on a thread of this library. What it throws is passed
   *     to that thread's uncaught-exception handler
   */
  public static ForeignLoan of(Runnable end) {
    return new ForeignLoan(MemoryLoan.of(Objects.requireNonNull(end, "end")));
  }

  /**
   * Ends the loan. Neither waits nor runs code of the user nor throws, so that it can be called by
   * any thread in any state; a thread of this library does what follows. Does nothing the second
   * time.
   */
  public void giveBack() {
    loan.giveBack();
  }

  /** {@return whether it was given back, and what follows is done} */
  public boolean isOver() {
    return loan.isOver();
  }

  @Override
  public String toString() {
    return "%s, %s".formatted(loan, isOver() ? "over" : "out");
  }
}

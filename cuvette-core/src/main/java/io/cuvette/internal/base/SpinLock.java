package io.cuvette.internal.base;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;

/**
 * A lock for sections of some tens of nanoseconds that never block, call a driver or run user code.
 * Thread-safe, for platform and virtual threads; not reentrant, not fair, and without an owner: any
 * thread may unlock.
 *
 * <p>Who waits spins, then yields, then parks for a while: a holder that lost its processor, or
 * thousands of virtual threads on a few carriers, get to run. What was written before {@link
 * #unlock} is seen after the next {@link #lock} or successful {@link #tryLock}.
 */
public final class SpinLock {
  private static final VarHandle CELL = MethodHandles.arrayElementVarHandle(int[].class);

  private static final int SPINS = 64;
  private static final int YIELDS = 64;
  private static final long FIRST_PARK_NANOS = 1_000;
  private static final long MAX_PARK_NANOS = 256_000;

  /** The state is 128 bytes or more away from anything else, as processors fetch lines in pairs. */
  private static final int STATE = 32;

  private final int[] cells = new int[2 * STATE + 1];

  /** Takes the lock if it is free. */
  public boolean tryLock() {
    return CELL.compareAndSet(cells, STATE, 0, 1);
  }

  /** Takes the lock, waiting for it without regard to interrupts. */
  public void lock() {
    if (!CELL.compareAndSet(cells, STATE, 0, 1)) {
      await();
    }
  }

  // Yielding is no more than a kindness here: parking is what the progress rests on.
  @SuppressWarnings("ThreadPriorityCheck")
  private void await() {
    for (int spin = 0; spin < SPINS; spin++) {
      Thread.onSpinWait();
      if (tryLockIfFree()) {
        return;
      }
    }
    for (int yield = 0; yield < YIELDS; yield++) {
      Thread.yield();
      if (tryLockIfFree()) {
        return;
      }
    }
    long nanos = FIRST_PARK_NANOS;
    while (!tryLockIfFree()) {
      // A pending interrupt makes parkNanos return at once; the yield keeps that harmless.
      Thread.yield();
      LockSupport.parkNanos(this, nanos);
      nanos = Math.min(nanos * 2, MAX_PARK_NANOS);
    }
  }

  /** Reads first: a failing compare-and-set would take the cache line from the holder. */
  private boolean tryLockIfFree() {
    return (int) CELL.getOpaque(cells, STATE) == 0 && tryLock();
  }

  /** Gives the lock back. */
  public void unlock() {
    assert isLocked() : "unlock of a lock that is free";
    CELL.setRelease(cells, STATE, 0);
  }

  /** Whether some thread holds the lock now. */
  public boolean isLocked() {
    return (int) CELL.getOpaque(cells, STATE) != 0;
  }
}

package io.cuvette.internal.session;

import io.cuvette.internal.base.BargingLock;
import io.cuvette.internal.lifetime.Ending;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.function.BooleanSupplier;

/**
 * Keeps two things apart: callbacks that hold streams, and calls of the driver that wait for all
 * streams, as cuMemFree does. Meanwhile the driver lets no other thread in, and what a callback
 * asks of it is what the call waits for. A call waits for the callbacks there are, and new ones
 * wait for it; it is not made as long as callbacks that add others leave no gap. Thread-safe.
 */
public final class HoldsAndFrees {
  private final BargingLock lock = new BargingLock();
  private final Condition changed = lock.newCondition();
  private int holding;
  private int freeing;
  private int wanting;

  /** Since when callbacks have been holding without a gap. */
  private long busySince;

  /**
   * A callback holds a stream from now on, until {@link #endHold}.
   *
   * @param isNested whether the caller is inside a callback, which all calls wait for already
   * @param nanos how long to wait for a call, but for one that is still waiting a second at most;
   *     if that was in vain, it holds all the same
   */
  public void beginHold(boolean isNested, long nanos) {
    lock.lock();
    try {
      if (!isNested) {
        await(() -> freeing == 0 && wanting == 0, Math.min(nanos, Ending.PATIENCE_NANOS));
        await(() -> freeing == 0, nanos);
      }
      if (holding++ == 0) {
        busySince = System.nanoTime();
      }
    } finally {
      lock.unlock();
    }
  }

  public void endHold() {
    lock.lock();
    try {
      holding--;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Whether some callback holds a stream. */
  public boolean areHolding() {
    lock.lock();
    try {
      return holding > 0;
    } finally {
      lock.unlock();
    }
  }

  /**
   * Makes a call that waits for all streams.
   *
   * @param nanos how long to wait for callbacks since they began, and a second in any case
   * @return false if they left no gap: the call was not made
   */
  public boolean free(Runnable call, long nanos) {
    lock.lock();
    try {
      long least = Math.min(nanos, Ending.PATIENCE_NANOS);
      if (!awaitGap(Math.max(least, busySince + nanos - System.nanoTime()))) {
        return false;
      }
      freeing++;
    } finally {
      lock.unlock();
    }
    try {
      call.run();
    } finally {
      end();
    }
    return true;
  }

  /** Whether there is a gap within some time after the callbacks began, or now. */
  public boolean hasGapWithin(long nanos) {
    lock.lock();
    try {
      return awaitGap(busySince + nanos - System.nanoTime());
    } finally {
      lock.unlock();
    }
  }

  /** Has new callbacks wait until there is a gap. Under the lock. */
  private boolean awaitGap(long nanos) {
    wanting++;
    try {
      await(() -> holding == 0, nanos);
      return holding == 0;
    } finally {
      wanting--;
      changed.signalAll();
    }
  }

  private void end() {
    lock.lock();
    try {
      freeing--;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  private void await(BooleanSupplier condition, long nanos) {
    long end = System.nanoTime() + nanos;
    boolean interrupted = false;
    while (!condition.getAsBoolean() && end - System.nanoTime() > 0) {
      try {
        boolean _ = changed.await(end - System.nanoTime(), TimeUnit.NANOSECONDS);
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}

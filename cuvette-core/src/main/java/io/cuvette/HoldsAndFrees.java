package io.cuvette;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/**
 * Keeps two things apart: callbacks that hold streams, and calls of the driver that wait for all
 * streams, as cuMemFree does. Meanwhile the driver lets no other thread in, and what a callback
 * asks of it is what the call waits for. A call waits for the callbacks there are, and new ones
 * wait for it. Thread-safe.
 */
final class HoldsAndFrees {
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private int holding;
  private int freeing;
  private int wanting;

  /**
   * A callback holds a stream from now on, until {@link #endHold}.
   *
   * @param isNested whether this is asked inside of a callback, which all calls wait for already
   * @param nanos how long to wait for a call, but for one that is still waiting a second at most;
   *     if that was in vain, it holds all the same
   */
  void beginHold(boolean isNested, long nanos) {
    lock.lock();
    try {
      if (!isNested) {
        await(() -> freeing == 0 && wanting == 0, Math.min(nanos, Lifetime.PATIENCE_NANOS));
        await(() -> freeing == 0, nanos);
      }
      holding++;
    } finally {
      lock.unlock();
    }
  }

  void endHold() {
    lock.lock();
    try {
      holding--;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Whether some callback holds a stream. */
  boolean areHolding() {
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
   * @param nanos how long to wait for callbacks; if that was in vain, the call waits for them
   */
  <T> T free(Supplier<T> call, long nanos) {
    begin(nanos);
    try {
      return call.get();
    } finally {
      end();
    }
  }

  private void begin(long nanos) {
    lock.lock();
    try {
      wanting++;
      try {
        await(() -> holding == 0, nanos);
      } finally {
        wanting--;
        freeing++;
      }
    } finally {
      lock.unlock();
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

package io.cuvette.internal.base;

import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Threads that are short of memory search for it one after the other: what one frees to make room
 * is not taken from it by the next, and what one allocates for all is allocated once. Nobody waits
 * for longer than a second, so that no thread can keep the others from going on: in its turn it
 * calls the driver and code of the user. Thread-safe.
 */
public final class Turns {
  private static final long PATIENCE_MILLIS = 1000;

  private final Semaphore turn = new Semaphore(1, true);

  /** Whose turn it is, so that it does not wait for itself. */
  private volatile @Nullable Thread current;

  /** Does something in this thread's turn. */
  public <T extends @Nullable Object> T take(Supplier<T> search) {
    boolean begun = begin();
    try {
      return search.get();
    } finally {
      if (begun) {
        current = null;
        turn.release();
      }
    }
  }

  /** Waits for this thread's turn; false if it has one or waited too long. Keeps an interrupt. */
  private boolean begin() {
    if (Thread.currentThread().equals(current)) {
      return false;
    }
    boolean interrupted = Thread.interrupted();
    boolean begun = false;
    try {
      begun = turn.tryAcquire(PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      interrupted = true;
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    if (begun) {
      current = Thread.currentThread();
    }
    return begun;
  }
}

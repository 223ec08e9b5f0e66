package io.cuvette;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * Keeps a handle of the driver from being destroyed while another thread asks the driver about it.
 * Those inside do one short driver call; who shuts the gate waits for them. Thread-safe.
 */
final class Gate {
  private static final int SHUT = Integer.MIN_VALUE;
  private static final long LOOK_AGAIN_NANOS = 1_000;

  /** The number of threads inside, with the sign bit set once the gate is shut. */
  private final AtomicInteger inside = new AtomicInteger();

  /** False if the gate is shut; else {@link #leave} must follow. */
  boolean enter() {
    return enter(0);
  }

  /**
   * The same for a step that can also be part of what a thread inside does: as long as somebody is
   * inside a gate that was shut, that may be this thread.
   */
  boolean enterAgain() {
    return enter(SHUT + 1);
  }

  /** As long as the count is not below the least. */
  private boolean enter(int least) {
    int before;
    do {
      before = inside.get();
      if (before < least) {
        return false;
      }
    } while (!inside.compareAndSet(before, before + 1));
    return true;
  }

  void leave() {
    inside.decrementAndGet();
  }

  boolean isShut() {
    return inside.get() < 0;
  }

  /** Lets nobody in any more and waits until nobody is inside. */
  void shut() {
    inside.getAndUpdate(count -> count | SHUT);
    boolean interrupted = false;
    while (inside.get() != SHUT) {
      // Else parking returns at once, and a virtual thread keeps its carrier from those inside.
      interrupted |= Thread.interrupted();
      LockSupport.parkNanos(this, LOOK_AGAIN_NANOS);
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  void reopen() {
    inside.set(0);
  }
}

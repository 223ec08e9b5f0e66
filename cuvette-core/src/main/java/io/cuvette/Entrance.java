package io.cuvette;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Where threads come in that make or give back what a {@link Cuda} owns. Who ends the Cuda shuts it
 * and waits for those inside; from then on that thread alone makes changes, and what others would
 * have given back is in its list. Nobody calls code of the user inside, which could end the Cuda.
 * Thread-safe.
 */
final class Entrance {
  private static final int SHUT = Integer.MIN_VALUE;
  private static final long LOOK_AGAIN_NANOS = 1_000;

  /** The number of entries not left again, with the sign bit set once the entrance is shut. */
  private final AtomicInteger inside = new AtomicInteger();

  /** Who ends the Cuda, as long as that lasts: it can enter all the same. */
  private volatile @Nullable Thread ending;

  /** Does something that is not done once the Cuda ends: whoever ends it does it then. */
  void run(Runnable step) {
    if (tryEnter()) {
      try {
        step.run();
      } finally {
        leave();
      }
    }
  }

  /**
   * Makes something that the Cuda owns.
   *
   * @throws IllegalStateException if the Cuda ends
   */
  <T extends @Nullable Object> T make(Supplier<T> maker) {
    if (!tryEnter()) {
      throw new IllegalStateException("Cuda is closed");
    }
    try {
      return maker.get();
    } finally {
      leave();
    }
  }

  /** False if the entrance is shut; else {@link #leave} must follow. */
  boolean tryEnter() {
    return tryEnter(0);
  }

  /**
   * The same for a step that can also be part of what a thread inside does: as long as somebody is
   * inside, that may be this thread.
   */
  boolean tryEnterAgain() {
    return tryEnter(SHUT + 1);
  }

  /** As long as the count is not below the least. */
  private boolean tryEnter(int least) {
    int before;
    do {
      before = inside.get();
      if (before < least) {
        return isEnding();
      }
    } while (!inside.compareAndSet(before, before + 1));
    return true;
  }

  void leave() {
    if (inside.get() >= 0 || !isEnding()) {
      inside.decrementAndGet();
    }
  }

  /** That thread is not counted: others must not take it for somebody who is still inside. */
  private boolean isEnding() {
    return Thread.currentThread().equals(ending);
  }

  /** Lets only this thread in from now on, and waits until nobody is inside. */
  void shut() {
    ending = Thread.currentThread();
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

  /** Lets nobody in any more: the Cuda has ended. */
  void close() {
    ending = null;
  }
}

package io.cuvette.internal.lifetime;

import io.cuvette.internal.base.Await;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Counts the uses of memory by code outside of Java, which nobody can take away. Memory that a
 * {@code Cuda} owns stays until the last of them is over: that ends the Cuda if it was closed
 * meanwhile. Thread-safe.
 */
public final class ForeignUsers {
  private static final long CLOSED = 1L << 62;

  /** The number of uses, and whether no more may come. */
  private final AtomicLong state = new AtomicLong();

  /** How many of them were given back, and are counted still. */
  private final AtomicLong returning = new AtomicLong();

  private final AtomicReference<@Nullable Runnable> end = new AtomicReference<>();

  /**
   * Counts one use more, until {@link #leave}.
   *
   * @throws IllegalStateException if the Cuda is closed
   */
  public void enter() {
    long now;
    do {
      now = state.get();
      if ((now & CLOSED) != 0) {
        throw new IllegalStateException("Cuda is closed");
      }
    } while (!state.compareAndSet(now, now + 1));
  }

  /** Notes that a use is over but for what follows, which ends with {@link #leaveReturned}. */
  public void beginReturn() {
    returning.incrementAndGet();
  }

  /** Ends a use that was given back. */
  public void leaveReturned() {
    try {
      leave();
    } finally {
      returning.decrementAndGet();
    }
  }

  /** Waits for what was given back, at most {@link Ending#PATIENCE_NANOS}. */
  public void awaitReturns() {
    boolean _ = Await.until(() -> returning.get() == 0, Ending.PATIENCE_NANOS);
  }

  /** Counts one less; the last one runs what was left to it. */
  public void leave() {
    if (state.decrementAndGet() == CLOSED) {
      Runnable left = end.getAndSet(null);
      if (left != null) {
        left.run();
      }
    }
  }

  /**
   * Lets no use begin any more, and leaves the end to the last one.
   *
   * @return false if there is none, so that the caller has to end it
   */
  public boolean leaveEnd(Runnable last) {
    end.set(last);
    long before = state.getAndUpdate(now -> now | CLOSED);
    return (before & ~CLOSED) != 0;
  }
}

package io.cuvette.internal.fence;

import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Knows whether a stream is idle that somebody may begin to capture at any moment, which a query of
 * the stream would then invalidate. A marker does no harm. Thread-safe.
 */
public final class IdleMark {
  /** What a device takes at most to come to an event in an idle stream, but for its other work. */
  private static final long IDLE_NANOS = 50_000;

  /** The least number of queries: the thread itself may be the one that is late. */
  private static final int QUERIES = 32;

  private final MarkedStream stream;
  private final EndedStreams ended;

  /** The work that was not done at the last query. */
  private final AtomicReference<@Nullable WorkMarker> last = new AtomicReference<>();

  /**
   * A mark for a stream.
   *
   * @param ended takes what nobody else queries
   */
  public IdleMark(MarkedStream stream, EndedStreams ended) {
    this.stream = stream;
    this.ended = ended;
  }

  /** Whether all work queued so far is certainly done; an idle stream may take a moment for it. */
  public boolean isReached() {
    return isReached(0);
  }

  /** The same for who wants to know it of an idle stream: waits for that moment. */
  public boolean isReachedSoon() {
    return isReached(IDLE_NANOS);
  }

  private boolean isReached(long nanos) {
    WorkMarker before = last.get();
    if (before != null && !before.isDone()) {
      return false;
    }
    WorkMarker now = WorkMarker.of(stream);
    boolean done = false;
    try {
      done = isDone(now, nanos);
      return done;
    } finally {
      keep(before, now, done);
    }
  }

  private void keep(@Nullable WorkMarker before, WorkMarker now, boolean done) {
    if (!last.compareAndSet(before, done ? null : now)) {
      ended.add(now); // nobody else has it
    }
    if (stream.isClosed()) {
      forget();
    }
  }

  private static boolean isDone(WorkMarker now, long nanos) {
    boolean done = now.isDone();
    long start = System.nanoTime();
    for (int i = 1; !done && nanos > 0; i++) {
      if (i >= QUERIES && System.nanoTime() - start >= nanos) {
        break;
      }
      Thread.onSpinWait();
      done = now.isDone();
    }
    return done;
  }

  /**
   * Waits for the work queued so far.
   *
   * @return false if a capture was in the way: it may not have been waited for
   */
  public boolean await() {
    WorkMarker now = WorkMarker.of(stream);
    boolean done = false;
    try {
      now.await();
      done = now.isDone();
      return done;
    } finally {
      if (!done) {
        ended.add(now); // it may have an event
      }
    }
  }

  /** Ends the queries: the stream is closed. */
  public void forget() {
    WorkMarker left = last.getAndSet(null);
    if (left != null) {
      ended.add(left);
    }
  }
}

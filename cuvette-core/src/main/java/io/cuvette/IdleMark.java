package io.cuvette;

import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Knows whether a stream is idle that somebody may begin to capture at any moment, which a query of
 * the stream would then invalidate. A guard does no harm. Thread-safe.
 */
final class IdleMark {
  private final StreamState stream;

  /** What was not done when it was last asked for. */
  private final AtomicReference<@Nullable Guard> last = new AtomicReference<>();

  IdleMark(StreamState stream) {
    this.stream = stream;
  }

  /** Whether all work queued so far is certainly done. */
  boolean isReached() {
    Guard before = last.get();
    if (before != null && !before.isDone()) {
      return false;
    }
    Guard now = Guard.of(stream);
    boolean done = false;
    try {
      now.record();
      done = now.isDone();
      return done;
    } finally {
      if (!last.compareAndSet(before, done ? null : now)) {
        stream.cuda.streams().ended().add(now); // nobody else has it
      }
      if (stream.isClosed()) {
        forget();
      }
    }
  }

  /** Nobody asks any more: the stream is closed. */
  void forget() {
    Guard left = last.getAndSet(null);
    if (left != null) {
      stream.cuda.streams().ended().add(left);
    }
  }
}

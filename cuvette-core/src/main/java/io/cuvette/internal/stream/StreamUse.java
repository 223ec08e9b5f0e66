package io.cuvette.internal.stream;

import io.cuvette.internal.clock.StreamClock;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import org.jspecify.annotations.Nullable;

/**
 * A stream that used some memory, in a list of these, newest first; and which of its work did, by
 * the numbers of its {@link StreamClock}. Thread-safe.
 */
public final class StreamUse {
  private static final AtomicLongFieldUpdater<StreamUse> NOTED =
      AtomicLongFieldUpdater.newUpdater(StreamUse.class, "noted");

  private final DriverStream stream;
  private final @Nullable StreamUse next;

  /** How many are in the list from here on. */
  private final int count;

  private volatile long noted;

  /** What the clock showed when the memory was closed; published by who looks for its end. */
  private long queued = StreamClock.NOT_NOTED;

  StreamUse(DriverStream stream, @Nullable StreamUse next, long noted) {
    this.stream = stream;
    this.next = next;
    this.count = next == null ? 1 : next.count + 1;
    this.noted = noted;
  }

  public DriverStream stream() {
    return stream;
  }

  public @Nullable StreamUse next() {
    return next;
  }

  int count() {
    return count;
  }

  void note(long number) {
    if (noted < number) {
      long _ = NOTED.accumulateAndGet(this, number, Math::max);
    }
  }

  void close() {
    queued = stream.clock.now();
  }

  public long queued() {
    return queued;
  }

  /** Once closed: whether the work is known to be done, without a call of the driver. */
  public boolean isKnownDone() {
    return stream.clock.isDone(noted, queued);
  }

  /** Once closed: whether the work is known to be done, or to come before what a stream does. */
  public boolean isBefore(DriverStream other) {
    return stream == other || isKnownDone() || other.clock.isAfter(stream.clock, noted, queued);
  }
}

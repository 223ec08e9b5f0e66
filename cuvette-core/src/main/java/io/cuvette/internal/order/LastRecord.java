package io.cuvette.internal.order;

import io.cuvette.internal.clock.Moment;
import io.cuvette.internal.stream.DriverStream;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * What comes before the last record of an event, as long as that is certain: not while threads
 * record it at once, nor ever again once others can, such as a graph or another process.
 * Thread-safe.
 */
final class LastRecord {
  /** Of {@link #records}, each record that begins; and one more, until it ends. */
  private static final long BEGUN = 1L << 32;

  private final AtomicLong records = new AtomicLong();

  /** A {@link Moment}, or else what only tells one record from the others. */
  private final AtomicReference<@Nullable Object> last = new AtomicReference<>();

  private volatile boolean shared;

  /** Others can record the event from now on. */
  void share() {
    shared = true;
  }

  /** Records the event by a call of the driver, for who holds the stream once. */
  void record(DriverStream stream, Runnable call) {
    Object unknown = new Object();
    Moment moment = stream.clock.isRunning() ? stream.clock.moment(1) : null;
    long mine = records.addAndGet(BEGUN + 1);
    boolean alone = (int) mine == 1;
    last.set(unknown);
    try {
      call.run();
      if (alone && records.get() == mine) { // nobody has begun since
        boolean _ = last.compareAndSet(unknown, moment);
      }
    } finally {
      long _ = records.decrementAndGet();
    }
  }

  /**
   * What comes before the last record; null if that is not certain. Who reads the same before and
   * after a call of the driver knows that the call was about that record.
   */
  @Nullable Moment moment() {
    return last.get() instanceof Moment moment && !shared ? moment : null;
  }
}

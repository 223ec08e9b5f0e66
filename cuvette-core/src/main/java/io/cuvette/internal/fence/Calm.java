package io.cuvette.internal.fence;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.function.IntSupplier;

/**
 * Whether a stream of this library is idle and nothing began in it since that was found: what is
 * freed then is done, without a question to the driver. Thread-safe.
 *
 * <p>Who queues work disturbs it first; so memory that the work uses is not freed before.
 */
public final class Calm {
  /** Whether an operation began since the last question was prepared. */
  private volatile boolean disturbed = true;

  /** Whether the last question found the stream idle. */
  private volatile boolean idle;

  private final AtomicBoolean asking = new AtomicBoolean();

  /** Begins with a stream that nothing was queued in. */
  public void begin() {
    idle = true;
    disturbed = false;
  }

  /** An operation has begun. */
  public void disturb() {
    if (!disturbed) {
      disturbed = true;
    }
  }

  /** Whether all that was queued so far is done. */
  public boolean lasts() {
    return !disturbed && idle; // in this order: what is reset first is read last
  }

  /**
   * Asks whether the stream is idle.
   *
   * @param holders how many operations hold the stream
   * @param question asks the driver
   */
  public boolean ask(IntSupplier holders, BooleanSupplier question) {
    if (!asking.compareAndSet(false, true)) {
      return question.getAsBoolean();
    }
    try {
      idle = false;
      disturbed = false;
      boolean alone = holders.getAsInt() == 0;
      boolean answer = question.getAsBoolean();
      idle = answer && alone;
      return answer;
    } finally {
      asking.set(false);
    }
  }
}

package io.cuvette.internal.streamcache;

import java.util.function.LongSupplier;

/**
 * Tells the time without reading the clock each time: while it is asked often, one reading stands
 * for up to {@value #MOST_QUESTIONS} questions, so that they cost next to nothing. What it tells is
 * never later than the time, and as a rule at most {@value #SELDOM_NANOS} ns earlier; who asks
 * often and then seldom is told the time of the last reading up to {@value #MOST_QUESTIONS} times.
 * Not thread-safe.
 */
public final class CoarseClock {
  static final int MOST_QUESTIONS = 64;

  /** Readings that follow each other faster than this become rarer. */
  static final long OFTEN_NANOS = 2_000;

  /** After so long each question reads the clock again. */
  static final long SELDOM_NANOS = 100_000;

  private final LongSupplier clock;
  private long last;
  private int questions = 1;
  private int left;

  public CoarseClock(LongSupplier clock) {
    this.clock = clock;
    this.last = clock.getAsLong();
  }

  public long now() {
    if (left > 0) {
      left--;
    } else {
      read();
    }
    return last;
  }

  private void read() {
    long now = clock.getAsLong();
    long past = now - last;
    if (past > SELDOM_NANOS) {
      questions = 1;
    } else if (past < OFTEN_NANOS && questions < MOST_QUESTIONS) {
      questions *= 2;
    }
    left = questions - 1;
    last = now;
  }

  /** What it told last. */
  long last() {
    return last;
  }
}

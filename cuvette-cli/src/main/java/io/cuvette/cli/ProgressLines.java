package io.cuvette.cli;

import java.io.PrintStream;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * A line for the step that is done, at most every ten seconds: short work shows none. For logs and
 * pipes. Not thread-safe.
 */
final class ProgressLines implements Progress {
  private static final long INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(10);

  private final String task;
  private final int steps;
  private final PrintStream out;
  private final LongSupplier clock;
  private long last;
  private int done;

  /** Counts the time from now, in nanoseconds of the clock. */
  ProgressLines(String task, int steps, PrintStream out, LongSupplier clock) {
    this.task = task;
    this.steps = steps;
    this.out = out;
    this.clock = clock;
    this.last = clock.getAsLong();
  }

  @Override
  public void step() {
    done++;
    long now = clock.getAsLong();
    if (now - last >= INTERVAL_NANOS) {
      last = now;
      out.println("cuvette: %s: %d of %d done".formatted(task, done, steps));
    }
  }

  @Override
  public void close() {}
}

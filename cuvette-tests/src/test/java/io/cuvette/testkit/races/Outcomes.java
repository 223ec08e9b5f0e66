package io.cuvette.testkit.races;

import io.cuvette.driver.CudaException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** What came of the rounds of one cell. Thread-safe. */
final class Outcomes {
  private static final int MOST_FAILURES = 3;

  private final AtomicInteger done = new AtomicInteger();
  private final AtomicInteger ended = new AtomicInteger();
  private final AtomicInteger failed = new AtomicInteger();
  private final ConcurrentLinkedQueue<Throwable> failures = new ConcurrentLinkedQueue<>();
  private final AtomicReference<@Nullable String> left = new AtomicReference<>();

  /** An operation completes, or says once that something was closed. */
  void run(Runnable operation) {
    try {
      operation.run();
      done.incrementAndGet();
    } catch (Throwable e) { // whatever it throws is the outcome
      if (e.getClass() == IllegalStateException.class && isAboutClosing(e)) {
        ended.incrementAndGet();
        // The JVM interrupts a thread in whose access to an arena it closes that.
        boolean _ = Thread.interrupted();
      } else {
        fail(e);
      }
    }
    checkNotInterrupted();
  }

  private void checkNotInterrupted() {
    if (Thread.interrupted()) {
      fail(new AssertionError("the thread is interrupted, and nobody did that"));
    }
  }

  private static boolean isAboutClosing(Throwable e) {
    return String.valueOf(e.getMessage()).contains("closed")
        && !(e.getCause() instanceof CudaException);
  }

  /** Something that must not throw. */
  void runEnd(AutoCloseable end) {
    try {
      end.close();
    } catch (Throwable e) { // whatever it throws is a failure
      fail(new AssertionError("closing threw", e));
    }
    checkNotInterrupted();
  }

  void fail(Throwable failure) {
    failed.incrementAndGet();
    if (failures.size() < MOST_FAILURES) {
      failures.add(failure);
    }
  }

  /** Says what was left after all rounds. */
  void left(String what) {
    left.set(what);
    fail(new AssertionError("left: " + what));
  }

  ConcurrentLinkedQueue<Throwable> failures() {
    return failures;
  }

  boolean passed() {
    return failed.get() == 0;
  }

  /** How many operations completed, and how many found something closed. */
  @Override
  public String toString() {
    return passed()
        ? "%d / %d".formatted(done.get(), ended.get())
        : "**%d failed**".formatted(failed.get());
  }
}

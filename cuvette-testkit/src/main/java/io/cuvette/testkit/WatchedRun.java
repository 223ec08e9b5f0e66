package io.cuvette.testkit;

import java.time.Duration;
import java.util.Map;
import java.util.StringJoiner;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** Runs something on a thread of its own and does not wait for it for ever. Stateless. */
final class WatchedRun {
  /** Long for a thread that gives up when it is interrupted: it may have to wait for its turn. */
  private static final Duration INTERRUPTED_LIMIT = Duration.ofSeconds(5);

  private WatchedRun() {}

  /** Something that may throw anything. */
  interface Body {
    void run() throws Exception;
  }

  /** Waits for the end of a run; a test may know sooner than a clock that it hangs. */
  @FunctionalInterface
  interface Patience {
    /** Returns whether the thread ended within the limit. */
    boolean awaitEnd(Thread run, Duration limit) throws InterruptedException;
  }

  /**
   * How a run ended. Immutable.
   *
   * @param thrown what it threw, null if nothing
   * @param hung the stacks of the threads at the time limit, null if it ended before
   */
  record Outcome(@Nullable Throwable thrown, @Nullable String hung) {}

  /**
   * Runs the body on a thread of the group, to which belong those that it starts; at the time
   * limit, notes the stacks, interrupts it, and leaves it.
   */
  static Outcome of(Body body, ThreadGroup group, Duration limit, Patience patience)
      throws InterruptedException {
    AtomicReference<@Nullable Throwable> thrown = new AtomicReference<>();
    Thread thread =
        Thread.ofPlatform()
            .group(group)
            .daemon()
            .name(group.getName())
            .unstarted(() -> run(body, thrown));
    thread.start();
    if (patience.awaitEnd(thread, limit)) {
      return new Outcome(thrown.get(), null);
    }
    String stacks = stacks(thread);
    thread.interrupt();
    String end =
        patience.awaitEnd(thread, INTERRUPTED_LIMIT)
            ? "ended when interrupted"
            : "ignores interrupts";
    return new Outcome(null, "no end within " + limit.toMillis() + " ms, " + end + "\n" + stacks);
  }

  private static void run(Body body, AtomicReference<@Nullable Throwable> thrown) {
    try {
      body.run();
    } catch (Throwable e) { // whatever the body throws is the outcome
      thrown.set(e);
    }
  }

  /** The stack of the run, and of every other thread that is busy in this library. */
  private static String stacks(Thread run) {
    StringJoiner text = new StringJoiner("\n");
    describe(run, run.getStackTrace(), text);
    for (Map.Entry<Thread, StackTraceElement[]> entry : Thread.getAllStackTraces().entrySet()) {
      if (!entry.getKey().equals(run) && isOurs(entry.getKey(), entry.getValue())) {
        describe(entry.getKey(), entry.getValue(), text);
      }
    }
    return text.toString();
  }

  private static boolean isOurs(Thread thread, StackTraceElement[] stack) {
    for (StackTraceElement element : stack) {
      if (element.getClassName().startsWith("io.cuvette.")) {
        return !thread.equals(Thread.currentThread());
      }
    }
    return false;
  }

  private static void describe(Thread thread, StackTraceElement[] stack, StringJoiner text) {
    text.add("\"" + thread.getName() + "\" " + thread.getState());
    for (StackTraceElement element : stack) {
      text.add("    at " + element);
    }
  }
}

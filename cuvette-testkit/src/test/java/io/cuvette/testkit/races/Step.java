package io.cuvette.testkit.races;

import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * One thread that stops once, before one of its calls, and another that starts there and goes on as
 * far as it can meanwhile: to its end, or until it waits for the first. Only a machine on which it
 * gets no processor for long makes them meet elsewhere. Confined to the first thread.
 */
final class Step implements Stop {
  private static final long PAUSE_NANOS = 20_000;

  /** So many looks in a row at a thread that waits: what it waits for is the first. */
  private static final int LOOKS = 8;

  private static final long LONGEST_NANOS = TimeUnit.MILLISECONDS.toNanos(50);
  private static final long PATIENCE_SECONDS = 60;

  private static final Set<Thread.State> WAITING =
      EnumSet.of(Thread.State.WAITING, Thread.State.TIMED_WAITING, Thread.State.BLOCKED);

  private final Thread first = Thread.currentThread();
  private final int call;
  private final Thread second;
  private int calls;

  private Step(int call, Thread second) {
    this.call = call;
    this.second = second;
  }

  /**
   * Runs two tasks, the first on the current thread.
   *
   * @param call before which call of the first the second starts, from 0 on; else it starts after
   * @return whether the first made that call
   */
  static boolean run(CountedDriver driver, int call, Runnable first, Runnable second)
      throws InterruptedException {
    String name = "beside call %d: %s".formatted(call, Thread.currentThread().getName());
    Step step = new Step(call, Thread.ofPlatform().daemon().name(name).unstarted(second));
    driver.stopAt(step);
    try {
      first.run();
    } finally {
      driver.stopAt(() -> {});
    }
    boolean wasThere = step.calls > call;
    if (!wasThere) {
      step.second.start();
    }
    step.second.join(TimeUnit.SECONDS.toMillis(PATIENCE_SECONDS));
    if (step.second.isAlive()) {
      throw new AssertionError(
          "hangs: %s at %s".formatted(name, List.of(step.second.getStackTrace())));
    }
    return wasThere;
  }

  @Override
  public void beforeCall() {
    if (Thread.currentThread().equals(first) && calls++ == call) {
      second.start();
      awaitSecond();
    }
  }

  private void awaitSecond() {
    long start = System.nanoTime();
    int waiting = 0;
    while (second.isAlive() && waiting < LOOKS && System.nanoTime() - start < LONGEST_NANOS) {
      LockSupport.parkNanos(PAUSE_NANOS);
      waiting = WAITING.contains(second.getState()) ? waiting + 1 : 0;
    }
  }
}

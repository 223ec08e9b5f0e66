package io.cuvette.testkit.races;

import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * One thread that stops once, before one of its calls, and another that starts there and goes on as
 * far as it can meanwhile: to its end, or until it waits for the first. Only a machine on which it
 * gets no processor for long makes them meet elsewhere. Confined to the first thread, whose name
 * the other has.
 */
final class Step implements Stop, AutoCloseable {
  private static final long PAUSE_NANOS = 20_000;

  /** So many looks at a thread that waits and makes no call meanwhile: it waits for the first. */
  private static final int LOOKS = 5;

  private static final long LONGEST_NANOS = TimeUnit.MILLISECONDS.toNanos(50);
  private static final long PATIENCE_SECONDS = 60;

  private static final Set<Thread.State> WAITING =
      EnumSet.of(Thread.State.WAITING, Thread.State.TIMED_WAITING, Thread.State.BLOCKED);

  private final Thread first = Thread.currentThread();
  private final Thread second;
  private final ExecutorService beside;
  private final CountedDriver driver;

  /** How many calls others have made: the second is not yet as far as it can get. */
  private final AtomicInteger others = new AtomicInteger();

  private int stopsAt;
  private int calls;
  private Runnable besides = () -> {};
  private @Nullable Future<?> running;

  /** Before, the second waits for its task alone. */
  private volatile boolean hasBegun;

  /** Steps on a driver that nobody else uses. */
  Step(CountedDriver driver) throws Exception {
    this.driver = driver;
    String name = "beside: " + first.getName();
    beside = Executors.newSingleThreadExecutor(Thread.ofPlatform().daemon().name(name).factory());
    second = beside.submit(Thread::currentThread).get();
  }

  /**
   * Runs two tasks, the first on the current thread.
   *
   * @param call before which call of the first the second starts, from 0 on; else it starts after
   * @return whether the first made that call
   */
  boolean run(int call, Runnable task, Runnable other) throws Exception {
    stopsAt = call;
    calls = 0;
    besides =
        () -> {
          hasBegun = true;
          other.run();
        };
    running = null;
    hasBegun = false;
    driver.stopAt(this);
    try {
      task.run();
    } finally {
      driver.stopAt(() -> {});
    }
    boolean wasThere = running != null;
    awaitEnd(running == null ? beside.submit(besides) : running);
    return wasThere;
  }

  private void awaitEnd(Future<?> end) throws InterruptedException, ExecutionException {
    try {
      end.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    } catch (TimeoutException e) {
      throw new AssertionError(
          "hangs beside call %d: %s at %s"
              .formatted(stopsAt, second.getName(), List.of(second.getStackTrace())),
          e);
    }
  }

  @Override
  public void beforeCall() {
    if (!Thread.currentThread().equals(first)) {
      int _ = others.incrementAndGet();
    } else if (calls++ == stopsAt) {
      running = beside.submit(besides);
      awaitWaiting(running);
    }
  }

  private void awaitWaiting(Future<?> end) {
    long start = System.nanoTime();
    int waiting = 0;
    int seen = others.get();
    while (!end.isDone() && waiting < LOOKS && System.nanoTime() - start < LONGEST_NANOS) {
      LockSupport.parkNanos(PAUSE_NANOS);
      if (seen != others.get()) {
        seen = others.get();
        waiting = 0;
      } else if (hasBegun && WAITING.contains(second.getState())) {
        waiting++;
      }
    }
  }

  @Override
  public void close() {
    beside.shutdownNow();
  }
}

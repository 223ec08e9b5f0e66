package io.cuvette.sim.internal.schedule;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import org.jspecify.annotations.Nullable;

/**
 * Runs queued work that no thread waits for, as on a GPU: a program that spins at memory which the
 * work writes, or polls something else, sees an end. Runs on one daemon thread that lives while
 * there is such work. Guarded by the driver's lock.
 */
public final class UnattendedWork {
  // So long that a run depends on its seed alone unless the program waits without the driver.
  private static final long FIRST_PATIENCE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long LEAST_PATIENCE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  /** How often a program that goes on calling the driver is left alone. */
  private static final int ROUNDS = 8;

  private static final int MOST_AT_ONCE = 1024;

  private final SimScheduler scheduler;
  private final Condition closing;
  private @Nullable Thread thread;

  /** Shorter each time it was needed: a program that spins does so often. */
  private long patienceNanos = FIRST_PATIENCE_NANOS;

  private boolean closed;

  public UnattendedWork(SimScheduler scheduler) {
    this.scheduler = scheduler;
    this.closing = scheduler.lock.newCondition();
  }

  /** A call ends, and leaves work that is not done. */
  public void left() {
    if (thread == null && !closed) {
      Thread started =
          Thread.ofPlatform()
              .daemon()
              .name("cuvette-sim-unattended")
              .inheritInheritableThreadLocals(false)
              .unstarted(this::loop);
      started.start();
      thread = started;
    }
  }

  public void close() {
    closed = true;
    closing.signalAll();
  }

  private void loop() {
    scheduler.lock.lock();
    try {
      int rounds = 0;
      while (!closed && scheduler.hasWork()) {
        long finished = scheduler.finished();
        long calls = scheduler.calls();
        rest();
        boolean isSilent = calls == scheduler.calls();
        rounds = finished == scheduler.finished() ? rounds + 1 : 0;
        if (!closed && rounds > (isSilent ? 0 : ROUNDS)) {
          runSome();
        }
      }
    } catch (InterruptedException e) {
      throw new IllegalStateException("nobody knows this thread", e);
    } finally {
      thread = null;
      scheduler.lock.unlock();
    }
  }

  private void rest() throws InterruptedException {
    long left = patienceNanos;
    while (!closed && left > 0) {
      left = closing.awaitNanos(left);
    }
  }

  private void runSome() {
    if (scheduler.runReady(MOST_AT_ONCE) > 0) {
      patienceNanos = Math.max(LEAST_PATIENCE_NANOS, patienceNanos / 2);
      scheduler.signalAll();
    }
  }
}

package io.cuvette.sim.internal.schedule;

import java.util.concurrent.TimeUnit;

/**
 * Runs queued work that no thread waits for, as on a GPU: a program that spins at memory which the
 * work writes, or polls something else, sees an end. Guarded by the driver's lock.
 */
public final class UnattendedWork {
  // So long that a run depends on its seed alone unless the program waits without the driver.
  private static final long FIRST_PATIENCE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long LEAST_PATIENCE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  /** How often a program that goes on calling the driver is left alone. */
  private static final int ROUNDS = 8;

  private static final int MOST_AT_ONCE = 1024;

  /** How long calls wait in vain for what the host does beside an idle device. */
  private static final long HOST_NANOS = TimeUnit.MILLISECONDS.toNanos(40);

  private final SimScheduler scheduler;
  private final SimThread thread;

  /** Shorter each time it was needed: a program that spins does so often. */
  private long patienceNanos = FIRST_PATIENCE_NANOS;

  private long hostNanos = HOST_NANOS;

  public UnattendedWork(SimScheduler scheduler) {
    this.scheduler = scheduler;
    this.thread = new SimThread(scheduler.lock, "cuvette-sim-unattended", this::runWhileLeft);
  }

  /** A call ends, and may leave work that is not done. */
  public void left() {
    if (scheduler.isPrompt() && !scheduler.hostThread().isCurrentThread()) {
      awaitHost();
    }
    if (scheduler.hasWork()) {
      thread.start();
    }
  }

  /** Lets functions of the host return, and what is behind them run, before the program goes on. */
  private void awaitHost() {
    long since = System.nanoTime();
    long waited = 0;
    while (waited < hostNanos / 4 && isHostDue()) {
      scheduler.awaitProgress(SimScheduler.POLL_NANOS);
      int _ = scheduler.runReady(MOST_AT_ONCE);
      waited = System.nanoTime() - since;
    }
    if (isHostDue()) {
      hostNanos -= waited;
    }
  }

  private boolean isHostDue() {
    return scheduler.hasWork() || !(scheduler.isClosed() || scheduler.hostThread().isIdle());
  }

  public void close() {
    thread.close();
  }

  private void runWhileLeft() throws InterruptedException {
    int rounds = 0;
    while (!thread.isClosed() && scheduler.hasWork()) {
      long finished = scheduler.finished();
      long calls = scheduler.calls();
      thread.rest(scheduler.isPrompt() ? LEAST_PATIENCE_NANOS : patienceNanos);
      boolean isSilent = calls == scheduler.calls();
      rounds = finished == scheduler.finished() ? rounds + 1 : 0;
      if (!thread.isClosed() && rounds > (isSilent ? 0 : ROUNDS)) {
        runSome();
      }
    }
  }

  private void runSome() {
    if (scheduler.runReady(MOST_AT_ONCE) > 0) {
      patienceNanos = Math.max(LEAST_PATIENCE_NANOS, patienceNanos / 2);
      scheduler.signalAll();
    }
  }
}

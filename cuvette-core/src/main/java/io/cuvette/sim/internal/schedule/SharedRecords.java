package io.cuvette.sim.internal.schedule;

import io.cuvette.sim.internal.queue.SimOp;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Runs the work before the records that other processes can wait for, although no thread of this
 * process waits: on one daemon thread that lives while there are such records. Guarded by the
 * driver's lock.
 */
public final class SharedRecords {
  // A program that records and then waits itself should run the work in the order of its seed.
  private static final long GRACE_NANOS = TimeUnit.MICROSECONDS.toNanos(500);
  private static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final SimScheduler scheduler;
  private final SimThread thread;
  private final List<SimOp> pending = new ArrayList<>();

  public SharedRecords(SimScheduler scheduler) {
    this.scheduler = scheduler;
    this.thread = new SimThread(scheduler.lock, "cuvette-sim-shared-records", this::runRecords);
  }

  public void add(SimOp record) {
    pending.add(record);
    thread.start();
    thread.notice();
  }

  public void close() {
    thread.close();
  }

  private void runRecords() throws InterruptedException {
    while (awaitRecord()) {
      if (!runSome()) {
        thread.rest(SimScheduler.POLL_NANOS);
      }
    }
  }

  /** Waits for a record; false if there is none for long, and at the end of the driver. */
  private boolean awaitRecord() throws InterruptedException {
    pending.removeIf(SimOp::isDone);
    if (pending.isEmpty()) {
      thread.rest(IDLE_NANOS, () -> !pending.isEmpty());
      if (!pending.isEmpty()) {
        thread.rest(GRACE_NANOS);
      }
    }
    return !pending.isEmpty() && !thread.isClosed();
  }

  /** Whether a record is done now that was not. */
  private boolean runSome() {
    boolean progress = false;
    for (SimOp record : List.copyOf(pending)) {
      progress |= !record.isDone() && scheduler.runThrough(record);
    }
    return progress;
  }
}

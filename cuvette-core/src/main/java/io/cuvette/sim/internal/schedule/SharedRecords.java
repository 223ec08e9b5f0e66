package io.cuvette.sim.internal.schedule;

import io.cuvette.sim.internal.queue.SimOp;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import org.jspecify.annotations.Nullable;

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
  private final Condition changed;
  private final List<SimOp> pending = new ArrayList<>();
  private @Nullable Thread thread;
  private boolean closed;

  public SharedRecords(SimScheduler scheduler) {
    this.scheduler = scheduler;
    this.changed = scheduler.lock.newCondition();
  }

  public void add(SimOp record) {
    pending.add(record);
    if (thread == null) {
      Thread started =
          Thread.ofPlatform()
              .daemon()
              .name("cuvette-sim-shared-records")
              .inheritInheritableThreadLocals(false)
              .unstarted(this::loop);
      started.start();
      thread = started;
    }
    changed.signalAll();
  }

  public void close() {
    closed = true;
    changed.signalAll();
  }

  private void loop() {
    scheduler.lock.lock();
    try {
      while (awaitRecord()) {
        if (!runSome()) {
          changed.awaitNanos(SimScheduler.POLL_NANOS);
        }
      }
    } catch (InterruptedException e) {
      throw new IllegalStateException("nobody knows this thread", e);
    } finally {
      thread = null;
      scheduler.lock.unlock();
    }
  }

  /** Waits for a record; false if there is none for long, and at the end of the driver. */
  private boolean awaitRecord() throws InterruptedException {
    pending.removeIf(SimOp::isDone);
    if (pending.isEmpty()) {
      long left = IDLE_NANOS;
      while (pending.isEmpty() && !closed && left > 0) {
        left = changed.awaitNanos(left);
      }
      for (left = GRACE_NANOS; !pending.isEmpty() && !closed && left > 0; ) {
        left = changed.awaitNanos(left);
      }
    }
    return !pending.isEmpty() && !closed;
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

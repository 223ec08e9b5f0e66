package io.cuvette.sim;

import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.UserFailures;
import java.util.ArrayDeque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import org.jspecify.annotations.Nullable;

/**
 * Runs the host functions of a driver in the order they were queued, on one daemon thread that
 * lives while there are any. It also runs the work before them, so that they come even if nobody
 * waits. Guarded by the driver's lock, which is not held while a function runs.
 */
final class HostFunctions {
  // A program that queues a function and then waits should be the one that runs the work before it,
  // in the order of its seed; so this thread starts a little later.
  private static final long GRACE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final SimScheduler scheduler;
  private final Condition changed;
  private final ArrayDeque<SimOp> queue = new ArrayDeque<>();
  private volatile @Nullable Thread thread;
  private @Nullable SimOp running;
  private boolean hurry;
  private boolean closed;

  HostFunctions(SimScheduler scheduler) {
    this.scheduler = scheduler;
    this.changed = scheduler.lock.newCondition();
  }

  void add(SimOp op) {
    queue.add(op);
    if (thread == null) {
      Thread started =
          Thread.ofPlatform()
              .daemon()
              .name("cuvette-sim-host-functions")
              .inheritInheritableThreadLocals(false)
              .unstarted(this::loop);
      thread = started;
      started.start();
    }
    changed.signalAll();
  }

  /** Somebody waits. */
  void hurry() {
    hurry = true;
    changed.signalAll();
  }

  boolean isIdle() {
    return queue.isEmpty() && running == null;
  }

  boolean isCurrentThread() {
    return Thread.currentThread().equals(thread);
  }

  /** Functions that did not start yet never will. */
  void close() {
    closed = true;
    queue.clear();
    changed.signalAll();
  }

  private void loop() {
    scheduler.lock.lock();
    try {
      while (awaitOne()) {
        runOne();
      }
    } finally {
      thread = null;
      scheduler.lock.unlock();
    }
  }

  /** Waits for a function, and then a little more; false if there is none for long. */
  private boolean awaitOne() {
    try {
      long left = IDLE_NANOS;
      while (queue.isEmpty() && !closed && left > 0) {
        left = changed.awaitNanos(left);
      }
      left = queue.isEmpty() ? 0 : GRACE_NANOS;
      while (!hurry && left > 0) {
        left = changed.awaitNanos(left);
      }
    } catch (InterruptedException e) {
      // Only a function can have interrupted this thread, which is not how it ends.
      return true;
    }
    hurry = false;
    return !queue.isEmpty();
  }

  private void runOne() {
    SimOp op = first();
    if (op == null) {
      awaitOutside();
      return;
    }
    queue.remove(op);
    running = op;
    Runnable function = op.hostFunction();
    if (function != null) {
      Throwable failure = call(function);
      if (!op.isDone()) {
        scheduler.finish(op.stream, op);
      }
      if (failure != null) {
        String text = "a host function threw " + UserFailures.text(failure);
        scheduler.fail(op.stream.device, new SimRefusal(CudaStatus.LAUNCH_FAILED, text));
      }
    }
    running = null;
    scheduler.signalAll();
  }

  /** The oldest function before which nothing is left; null if all wait for other processes. */
  private @Nullable SimOp first() {
    for (SimOp op : List.copyOf(queue)) {
      if (scheduler.runUpTo(op)) {
        return op;
      }
    }
    return null;
  }

  private void awaitOutside() {
    try {
      long left = SimScheduler.POLL_NANOS;
      while (left > 0) {
        left = changed.awaitNanos(left);
      }
    } catch (InterruptedException e) {
      // Only a function can have interrupted this thread: it looks again at once.
    }
  }

  private @Nullable Throwable call(Runnable function) {
    scheduler.lock.unlock();
    try {
      function.run();
      return null;
    } catch (Throwable e) { // whatever the caller's function throws
      return e;
    } finally {
      scheduler.lock.lock();
    }
  }
}

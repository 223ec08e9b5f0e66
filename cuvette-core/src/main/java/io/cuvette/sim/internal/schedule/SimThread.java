package io.cuvette.sim.internal.schedule;

import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A daemon thread of a driver that lives while there is something for it to do. It has the driver's
 * lock but while it rests. Guarded by that lock, unless a method says more.
 */
final class SimThread {
  private final ReentrantLock lock;
  private final Condition changed;
  private final String name;
  private final Task task;
  private volatile @Nullable Thread thread;
  private boolean closed;

  /** What the thread does while it lives. */
  interface Task {
    void run() throws InterruptedException;
  }

  SimThread(ReentrantLock lock, String name, Task task) {
    this.lock = lock;
    this.changed = lock.newCondition();
    this.name = name;
    this.task = task;
  }

  /** There is something to do. */
  void start() {
    if (thread == null && !closed) {
      Thread started =
          Thread.ofPlatform()
              .daemon()
              .name(name)
              .inheritInheritableThreadLocals(false)
              .unstarted(this::live);
      started.start();
      thread = started;
    }
  }

  private void live() {
    lock.lock();
    try {
      task.run();
    } catch (InterruptedException e) {
      throw new IllegalStateException("nobody knows this thread", e);
    } finally {
      thread = null;
      lock.unlock();
    }
  }

  /** Ends the thread's rest: what it rests for may have come. */
  void notice() {
    changed.signalAll();
  }

  /** Has the thread rest for some time, or until the driver is closed. */
  void rest(long nanos) throws InterruptedException {
    rest(nanos, () -> false);
  }

  /** The same, or until something has come. */
  void rest(long nanos, BooleanSupplier hasCome) throws InterruptedException {
    long left = nanos;
    while (!closed && left > 0 && !hasCome.getAsBoolean()) {
      left = changed.awaitNanos(left);
    }
  }

  void close() {
    closed = true;
    changed.signalAll();
  }

  boolean isClosed() {
    return closed;
  }

  /** Whether this thread is it. For any thread. */
  boolean isCurrent() {
    return Thread.currentThread().equals(thread);
  }

  /** Whether the thread waits for the driver's lock. For any thread. */
  boolean isHeldUp() {
    Thread alive = thread;
    return alive != null && lock.hasQueuedThread(alive);
  }
}

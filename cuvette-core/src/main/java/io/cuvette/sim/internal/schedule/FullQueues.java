package io.cuvette.sim.internal.schedule;

import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import org.jspecify.annotations.Nullable;

/**
 * Where threads wait until a queue that they filled has room again, at the end of their call.
 * Guarded by the driver's lock.
 */
final class FullQueues {
  /** A program that fills a stream which it holds itself goes on if queues are not shared. */
  private static final long STALL_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  private final SimScheduler scheduler;
  private final boolean shared;

  /** Signalled when a queue has room again, and when a thread has what it waited for. */
  private final Condition room;

  /** The queue that the call of this moment has filled. */
  private @Nullable SimQueue full;

  /** The number of threads that wait for room. */
  private int waiting;

  FullQueues(SimScheduler scheduler, boolean shared) {
    this.scheduler = scheduler;
    this.shared = shared;
    this.room = scheduler.lock.newCondition();
  }

  void filled(SimQueue queue) {
    full = queue;
  }

  /** Waits while others wait for room in a shared queue: so do all calls of a GPU's driver. */
  void beginCall() {
    while (shared && waiting > 0 && !scheduler.isClosed()) {
      SimScheduler.awaitNanos(room, LOOK_NANOS);
    }
  }

  /** Waits until the queue that the call has filled has room. */
  void endCall() {
    SimQueue filled = full;
    if (filled != null) {
      full = null;
      waiting++;
      filled.waiting++;
      scheduler.standstill().watch();
      awaitRoom(filled);
      filled.waiting--;
      waiting--;
      signalAll();
    }
  }

  private void awaitRoom(SimQueue filled) {
    long since = System.nanoTime();
    while (!hasRoom(filled)) {
      SimOp first = filled.first();
      if (scheduler.advance(filled)) {
        continue;
      }
      scheduler.hostThread().hurry();
      SimScheduler.awaitNanos(room, LOOK_NANOS);
      if (filled.peek() != first || scheduler.hostThread().isDue()) {
        since = System.nanoTime();
      } else if (!shared && System.nanoTime() - since > STALL_NANOS) {
        filled.stalled = first;
      }
    }
  }

  private boolean hasRoom(SimQueue queue) {
    return !queue.isOverfull() || queue.first() == queue.stalled || scheduler.isClosed();
  }

  void signalAll() {
    room.signalAll();
  }
}

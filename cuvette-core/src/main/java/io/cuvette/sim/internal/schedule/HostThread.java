package io.cuvette.sim.internal.schedule;

import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.UserFailures;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.pace.Order;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimStream;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Runs the host functions of a driver on one daemon thread, those of each stream in the order they
 * were queued. It also runs the work before them, so that they run even if no thread waits. Guarded
 * by the driver's lock, which is not held while a function runs.
 */
public final class HostThread {
  // A program that queues a function and then waits should be the one that runs the work before it,
  // in the order of its seed; so this thread starts a little later.
  private static final long GRACE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(1);

  /** With more functions than that this thread is behind. */
  private static final int FEW = 16;

  private static final int MOST_YIELDS = 100;

  /** Each look for this thread among all that wait for the lock goes past perhaps thousands. */
  private static final int YIELDS_PER_LOOK = 10;

  private final SimScheduler scheduler;
  private final SimThread thread;

  /** Which stream's function is next. */
  private final Order order;

  /** The functions of each stream, oldest first. */
  private final Map<SimStream, ArrayDeque<Numbered>> queues = new HashMap<>();

  /** The same by the number of the oldest: before that no other of the stream can run. */
  private final TreeMap<Long, ArrayDeque<Numbered>> byOldest = new TreeMap<>();

  private long added;

  private @Nullable SimOp running;

  /** Whether the function itself is running. */
  private volatile boolean calling;

  /** The number of functions that have not started. */
  private int waiting;

  /** Whether these are many. */
  private volatile boolean behind;

  private boolean hurry;

  private record Numbered(SimOp op, long number) {}

  public HostThread(SimScheduler scheduler, Order order) {
    this.scheduler = scheduler;
    this.order = order;
    this.thread = new SimThread(scheduler.lock, "cuvette-sim-host-functions", this::runAll);
  }

  public void add(SimOp op) {
    Numbered last = new Numbered(op, ++added);
    ArrayDeque<Numbered> queue = queues.computeIfAbsent(op.stream, _ -> new ArrayDeque<>());
    queue.add(last);
    if (queue.size() == 1) {
      byOldest.put(last.number, queue);
    }
    count(1);
    thread.start();
    thread.notice();
  }

  /** Notes that a thread waits. */
  public void hurry() {
    hurry = true;
    thread.notice();
  }

  public boolean isIdle() {
    return queues.isEmpty() && running == null;
  }

  /** Whether there is something to do, and not a function that takes its time. */
  public boolean isDue() {
    return !isIdle() && !calling;
  }

  public boolean isCurrentThread() {
    return thread.isCurrent();
  }

  /** Lets this thread have the lock if it is behind: among many that queue more it would starve. */
  @SuppressWarnings("ThreadPriorityCheck") // it is only a hint
  public void giveWay() {
    for (int i = 0; i < MOST_YIELDS && behind; i++) {
      if (i % YIELDS_PER_LOOK == 0 && !thread.isHeldUp()) {
        return;
      }
      Thread.yield();
    }
  }

  /** Functions that did not start yet never will. */
  public void close() {
    queues.clear();
    byOldest.clear();
    count(-waiting);
    thread.close();
  }

  private void runAll() {
    while (awaitOne()) {
      runOne();
    }
  }

  /** Waits for a function, and then a little more; false if there is none for long. */
  private boolean awaitOne() {
    try {
      thread.rest(IDLE_NANOS, () -> !queues.isEmpty());
      if (!queues.isEmpty()) {
        thread.rest(GRACE_NANOS, () -> hurry || behind);
      }
    } catch (InterruptedException e) {
      // Only a function can have interrupted this thread, which is not how it ends.
      return true;
    }
    hurry = false;
    return !queues.isEmpty();
  }

  private void runOne() {
    SimOp op = first();
    if (op == null) {
      awaitOutside();
      return;
    }
    remove(op);
    running = op;
    Runnable function = op.hostFunction();
    if (function != null) {
      Throwable failure = call(function);
      if (!op.isDone()) {
        scheduler.finish(op);
      }
      if (failure != null) {
        String text = "a host function threw " + UserFailures.text(failure);
        scheduler.fail(op.stream.device, new SimRefusal(CudaStatus.LAUNCH_FAILED, text));
      }
    }
    running = null;
    scheduler.endHostFunction();
  }

  /** One before which nothing is left, of few the seed's; null if all wait for what is outside. */
  private @Nullable SimOp first() {
    List<SimOp> few = byOldest.values().stream().limit(FEW).map(all -> all.element().op).toList();
    SimOp chosen = few.get(order.next(few.size(), i -> few.get(i).stream.queue.id));
    if (scheduler.runUpTo(chosen)) {
      return chosen;
    }
    for (ArrayDeque<Numbered> queue : byOldest.values()) {
      SimOp op = queue.element().op;
      if (scheduler.runUpTo(op)) {
        return op;
      }
    }
    return null;
  }

  private void count(int more) {
    waiting += more;
    behind = waiting > FEW;
  }

  private void remove(SimOp op) {
    ArrayDeque<Numbered> queue = queues.get(op.stream);
    if (queue != null) { // null if the driver was closed meanwhile
      byOldest.remove(queue.remove().number);
      count(-1);
      if (queue.isEmpty()) {
        queues.remove(op.stream);
      } else {
        byOldest.put(queue.element().number, queue);
      }
    }
  }

  private void awaitOutside() {
    try {
      thread.rest(SimScheduler.POLL_NANOS);
    } catch (InterruptedException e) {
      // Only a function can have interrupted this thread: it looks again at once.
    }
  }

  private @Nullable Throwable call(Runnable function) {
    calling = true;
    scheduler.lock.unlock();
    try {
      function.run();
      return null;
    } catch (Throwable e) { // whatever the caller's function throws
      return e;
    } finally {
      calling = false;
      scheduler.lock.lock();
    }
  }
}

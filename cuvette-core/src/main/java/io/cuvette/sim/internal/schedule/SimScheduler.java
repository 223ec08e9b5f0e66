package io.cuvette.sim.internal.schedule;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.SimRefusal;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.IntToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * Runs queued operations: while a thread waits, and between the calls as its schedule says. Each
 * time it is the first operation of a stream that the schedule chooses from those that are ready.
 * So each seed gives one of the orders and times that a device could have chosen. The lock is that
 * of the whole driver; all but the lock is guarded by it.
 */
public final class SimScheduler {
  // How long a waiting thread lets a host function run before it goes on with other streams: long
  // enough that the order depends on the seed alone unless the function waits for something itself.
  private static final long PATIENCE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

  /** How many operations wait in a stream before queueing one more waits too, as on a GPU. */
  private static final int ROOM = 1024;

  // A program that fills a stream which it holds itself would wait for ever on a GPU; not here.
  private static final long STALL_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  /** How soon something outside of the driver is looked at again: more and more seldom. */
  public static final long POLL_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

  private static final long LAST_POLL_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long LOOK_NANOS = TimeUnit.MICROSECONDS.toNanos(10);

  public final ReentrantLock lock = new ReentrantLock();

  private final Condition progress = lock.newCondition();

  /** Signalled when a stream has room again. */
  private final Condition room = lock.newCondition();

  private final HostFunctions hostFunctions = new HostFunctions(this);
  private final SharedRecords sharedRecords = new SharedRecords(this);
  private final List<SimStream> ready = new ArrayList<>();

  /** Streams whose first operation waits for something outside of the driver. */
  private final List<SimStream> outside = new ArrayList<>();

  private long lookedNanos = System.nanoTime() - LOOK_NANOS;

  /** The stream that the call of this moment has filled. */
  private @Nullable SimStream full;

  private final SimSchedule schedule;
  private final IntToLongFunction readyIds = this::readyId;
  private final UnattendedWork unattended = new UnattendedWork(this);
  private final Consumer<SimOp> waits;

  /** The number of calls that ended, and of operations. */
  private long calls;

  private long finished;

  /** When the operation that runs was queued. */
  private long queuedNanos = Long.MAX_VALUE;

  /** Whether the current call found pending work. */
  private boolean busy;

  private boolean closed;

  /** Creates a scheduler that reports each queued operation that waits for another. */
  public SimScheduler(SimSchedule schedule, Consumer<SimOp> waits) {
    this.schedule = schedule;
    this.waits = waits;
  }

  public HostFunctions hostFunctions() {
    return hostFunctions;
  }

  public SharedRecords sharedRecords() {
    return sharedRecords;
  }

  /** Queues an operation, behind what the rules of the legacy stream put before it. */
  public void submit(SimOp op) {
    SimStream stream = op.stream;
    SimDevice device = stream.device;
    if (stream.isLegacy()) {
      for (SimOp end : device.takeBlockingEnds()) {
        enqueue(SimOp.waiting(stream, end, op.queuedNanos));
      }
    }
    SimOp legacy = stream.legacyToWaitFor();
    if (legacy != null) {
      enqueue(SimOp.waiting(stream, legacy, op.queuedNanos));
    }
    enqueue(op);
    if (op.hostFunction() != null) {
      hostFunctions.add(op);
    }
  }

  private void enqueue(SimOp op) {
    SimStream stream = op.stream;
    stream.append(op);
    stream.device.added(stream);
    if (op.dependency() != null) {
      waits.accept(op);
    }
    if (stream.queue.size() == 1) {
      arrange(stream);
    } else if (stream.queue.size() > ROOM && (stream.flags & SimStream.HIDDEN) == 0) {
      full = stream;
    }
  }

  /** Ends a call: waits for room if it queued too much, and lets some time pass. */
  public void endCall() {
    calls++;
    if (full != null) {
      awaitRoom();
    }
    boolean wasBusy = busy;
    busy = false;
    if (hasWork()) {
      runReady(wasBusy ? schedule.pace().afterBusyQuery() : schedule.pace().afterCall());
      if (hasWork()) {
        unattended.left();
      }
    }
  }

  /** The call of this moment gives the answer that work is not done. */
  public void toldBusy() {
    busy = true;
  }

  /** Whether there are operations that wait for no other. */
  public boolean hasWork() {
    return !closed && !(ready.isEmpty() && outside.isEmpty());
  }

  /** The number of calls that ended. */
  public long calls() {
    return calls;
  }

  /** The number of operations that ended. */
  public long finished() {
    return finished;
  }

  /** Waits until the stream has room again, but not for an operation that does not end. */
  private void awaitRoom() {
    SimStream filled = full;
    full = null;
    long since = System.nanoTime();
    while (filled != null && !hasRoom(filled)) {
      SimOp first = filled.queue.element();
      if (advance(filled)) {
        continue;
      }
      hostFunctions.hurry();
      awaitNanos(room, LAST_POLL_NANOS);
      if (filled.queue.peek() != first || hostFunctions.isDue()) {
        since = System.nanoTime();
      } else if (System.nanoTime() - since > STALL_NANOS) {
        filled.stalled = first;
      }
    }
  }

  private boolean hasRoom(SimStream stream) {
    return stream.queue.size() <= ROOM || stream.queue.element() == stream.stalled || closed;
  }

  /** Puts a stream where its first operation belongs: among the ready, or behind what blocks it. */
  private void arrange(SimStream stream) {
    SimOp head = stream.queue.peek();
    if (head == null) {
      return;
    }
    SimOp dependency = head.dependency();
    if (dependency != null && !dependency.isDone()) {
      stream.blockedBy = dependency;
      dependency.block(stream);
    } else if (head.outside() != null) {
      outside.add(stream);
    } else {
      addReady(stream);
    }
  }

  private void addReady(SimStream stream) {
    stream.readyIndex = ready.size();
    ready.add(stream);
  }

  /** Looks at what is outside of the driver: streams that wait for it may be ready now. */
  private void look() {
    long now = System.nanoTime();
    if (outside.isEmpty() || now - lookedNanos < LOOK_NANOS) {
      return;
    }
    lookedNanos = now;
    for (int i = outside.size() - 1; i >= 0; i--) {
      SimStream stream = outside.get(i);
      BooleanSupplier condition = stream.queue.element().outside();
      if (condition == null || condition.getAsBoolean()) {
        outside.remove(i);
        addReady(stream);
      }
    }
  }

  private void removeReady(SimStream stream) {
    if (stream.readyIndex >= 0) {
      SimStream last = ready.removeLast();
      if (last != stream) {
        ready.set(stream.readyIndex, last);
        last.readyIndex = stream.readyIndex;
      }
      stream.readyIndex = -1;
    }
  }

  /** Runs and waits until an operation is done. */
  public void await(@Nullable SimOp op) {
    if (op != null) {
      awaitUntil(op::isDone);
    }
  }

  public void awaitUntil(BooleanSupplier condition) {
    await(condition, false);
  }

  /** Runs and waits until something outside of the driver holds, which is looked at often. */
  public void awaitOutside(BooleanSupplier condition) {
    await(condition, true);
  }

  private void await(BooleanSupplier condition, boolean isOutside) {
    long poll = POLL_NANOS;
    // What is outside of the driver is gone once the driver is closed.
    while ((isOutside && closed) || !condition.getAsBoolean()) {
      if (closed) {
        throw new SimRefusal(CudaStatus.DEINITIALIZED, "the driver was closed meanwhile");
      }
      if (step()) {
        poll = POLL_NANOS;
      } else {
        awaitProgress(isOutside || !outside.isEmpty() ? poll : 0);
        poll = Math.min(2 * poll, LAST_POLL_NANOS);
      }
    }
  }

  /** Waits a while, or with 0 until a host function is done. */
  private void awaitProgress(long nanos) {
    boolean idle = hostFunctions.isIdle();
    if (!idle) {
      hostFunctions.hurry();
    }
    if (nanos > 0) {
      awaitNanos(progress, nanos);
    } else if (idle) {
      throw new IllegalStateException("the simulated device is stuck: a defect of the simulator");
    } else {
      awaitSignal();
    }
  }

  @SuppressWarnings("WaitNotInLoop") // the loop is in who calls this
  private void awaitSignal() {
    progress.awaitUninterruptibly();
  }

  /** Waits for a while, or a signal; an interrupt does not end that, and is not lost. */
  @SuppressWarnings("WaitNotInLoop") // the loop is in who calls this
  private static void awaitNanos(Condition condition, long nanos) {
    boolean interrupted = Thread.interrupted();
    try {
      long _ = condition.awaitNanos(nanos);
    } catch (InterruptedException e) {
      interrupted = true;
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Runs one operation, or waits a little for a host function; false if no stream is ready. */
  public boolean step() {
    look();
    if (ready.isEmpty()) {
      return false;
    }
    SimStream stream = next();
    SimOp head = stream.queue.element();
    if (head.hostFunction() == null) {
      run(stream, head);
    } else if (!awaitHostFunction(head)) {
      removeReady(stream);
    }
    return true;
  }

  private long readyId(int index) {
    return ready.get(index).id;
  }

  private SimStream next() {
    return ready.get(schedule.order().next(ready.size(), readyIds));
  }

  /**
   * Runs up to a number of operations, and waits for nothing: host functions are left to their
   * thread.
   *
   * @return how many ran
   */
  public int runReady(int most) {
    int ran = 0;
    if (most > 0) {
      look();
    }
    while (ran < most && !ready.isEmpty()) {
      SimStream stream = next();
      SimOp head = stream.queue.element();
      if (head.hostFunction() == null) {
        run(stream, head);
        ran++;
      } else {
        hostFunctions.hurry();
        removeReady(stream);
      }
    }
    return ran;
  }

  private boolean awaitHostFunction(SimOp op) {
    hostFunctions.hurry();
    long left = PATIENCE_NANOS;
    try {
      while (!op.isDone() && left > 0) {
        left = progress.awaitNanos(left);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return op.isDone();
  }

  /**
   * Runs what is before an operation, whatever the seed, but not the operation.
   *
   * @return false if something outside of the driver, or a host function, has to come first
   */
  public boolean runUpTo(SimOp op) {
    look();
    while (!op.isDone() && op.stream.queue.element() != op) {
      if (!advance(op.stream)) {
        return false;
      }
    }
    return true;
  }

  /** Runs the next operation that a stream needs, of whichever stream; false if it cannot. */
  private boolean advance(SimStream stream) {
    SimStream first = stream;
    while (first.blockedBy != null) {
      first = first.blockedBy.stream;
    }
    SimOp head = first.queue.element();
    boolean can = head.hostFunction() == null && !outside.contains(first);
    if (can) {
      run(first, head);
    }
    return can;
  }

  /** The same with the operation. */
  public boolean runThrough(SimOp op) {
    if (!runUpTo(op)) {
      hostFunctions.hurry();
      return false;
    }
    if (!op.isDone()) {
      run(op.stream, op);
      signalAll();
    }
    return true;
  }

  /** When the operation that runs was queued; the end of time if none runs. */
  public long queuedNanos() {
    return queuedNanos;
  }

  private void run(SimStream stream, SimOp op) {
    try {
      queuedNanos = op.queuedNanos;
      op.work().run();
      finish(stream, op);
    } catch (SimRefusal e) {
      fail(stream.device, e);
    } catch (OutOfMemoryError | InternalError e) {
      // The heap of this JVM and a file stand for memory; InternalError is a mapped file on a full
      // disk.
      String text = "the simulator needs more heap (-Xmx) or more room for its file: " + e;
      fail(stream.device, new SimRefusal(CudaStatus.UNKNOWN, text));
    } catch (RuntimeException e) {
      fail(stream.device, new SimRefusal(CudaStatus.UNKNOWN, "an operation failed: " + e));
    } finally {
      queuedNanos = Long.MAX_VALUE;
    }
  }

  public void finish(SimStream stream, SimOp op) {
    removeReady(stream);
    finished++;
    stream.queue.remove();
    if (stream.queue.size() == ROOM) {
      room.signalAll();
    }
    stream.nanos = op.startNanos(stream.nanos) + op.costNanos;
    stream.device.removed(stream);
    wake(op.finish(stream.nanos), op);
    arrange(stream);
  }

  /** Ends an operation that was never queued, for those that wait for it. */
  public void drop(SimOp op) {
    wake(op.finish(op.stream.nanos), op);
  }

  /** What the first operation of a stream waited for outside of the driver holds now. */
  public void pass(SimOp op) {
    if (!op.isDone()) {
      outside.remove(op.stream);
      addReady(op.stream);
      signalAll();
    }
  }

  private void wake(List<SimStream> streams, SimOp op) {
    for (SimStream stream : streams) {
      if (stream.blockedBy == op) {
        stream.blockedBy = null;
        arrange(stream);
      }
    }
  }

  /** Fails the device for good: what is queued there never runs, and is not waited for. */
  public void fail(SimDevice device, SimRefusal failure) {
    device.fail(failure);
    for (SimStream stream : device.activeStreams()) {
      removeReady(stream);
      outside.remove(stream);
      stream.blockedBy = null;
      while (!stream.queue.isEmpty()) {
        SimOp op = stream.queue.remove();
        device.removed(stream);
        wake(op.finish(stream.nanos), op);
      }
    }
    signalAll();
    room.signalAll();
  }

  /** Drops queued work and wakes the threads that wait for it. */
  public void close() {
    closed = true;
    hostFunctions.close();
    sharedRecords.close();
    unattended.close();
    signalAll();
    room.signalAll();
  }

  public void signalAll() {
    progress.signalAll();
  }
}

package io.cuvette.sim.internal.schedule;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.pace.SimSchedule;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimQueue;
import io.cuvette.sim.internal.queue.SimStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
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

  /** How soon something outside of the driver is looked at again: more and more seldom. */
  public static final long POLL_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

  private static final long LAST_POLL_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long LOOK_NANOS = TimeUnit.MICROSECONDS.toNanos(10);

  public final ReentrantLock lock = new ReentrantLock();

  private final Condition progress = lock.newCondition();

  private final HostThread hostThread;
  private final SharedRecords sharedRecords = new SharedRecords(this);
  private final FullQueues fullQueues;
  private final Standstill standstill;
  private final List<SimDevice> devices;
  private final ReadyQueues ready = new ReadyQueues();

  /** Queues whose first operation waits for something outside of the driver. */
  private final List<SimQueue> outside = new ArrayList<>();

  private long lookedNanos = System.nanoTime() - LOOK_NANOS;

  private final SimSchedule schedule;
  private final UnattendedWork unattended = new UnattendedWork(this);
  private final Consumer<SimOp> waits;

  /** The number of calls that ended, and of operations queued and ended. */
  private long calls;

  private long queued;
  private long finished;
  private int pending;

  /** When the operation that runs was queued. */
  private long queuedNanos = Long.MAX_VALUE;

  /** Whether the current call found pending work. */
  private boolean busy;

  private boolean closed;

  /** Creates a scheduler of devices that reports each queued operation that waits for another. */
  public SimScheduler(SimulatedOptions options, List<SimDevice> devices, Consumer<SimOp> waits) {
    boolean shared = SimSchedule.queues(options) > 0;
    this.schedule = SimSchedule.of(options);
    this.hostThread = new HostThread(this, SimSchedule.of(options).order());
    this.devices = devices;
    this.waits = waits;
    this.fullQueues = new FullQueues(this, shared);
    this.standstill = new Standstill(this, shared, options.queuePatienceMillis());
  }

  List<SimDevice> devices() {
    return devices;
  }

  Standstill standstill() {
    return standstill;
  }

  public HostThread hostThread() {
    return hostThread;
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
      hostThread.add(op);
    }
  }

  private void enqueue(SimOp op) {
    SimStream stream = op.stream;
    queued++;
    pending++;
    stream.append(op);
    stream.device.added(stream);
    if (op.dependency() != null) {
      waits.accept(op);
    }
    SimQueue queue = stream.queue;
    if (queue.add(op)) {
      arrange(queue);
    } else if (queue.isOverfull()) {
      fullQueues.filled(queue);
    }
    standstill.watch();
  }

  /** Begins a call: waits behind those that wait for room, if queues are shared. */
  public void beginCall() {
    fullQueues.beginCall();
  }

  /** Ends a call: waits for room if it queued too much, and lets some time pass. */
  public void endCall() {
    calls++;
    fullQueues.endCall();
    boolean wasBusy = busy;
    busy = false;
    if (hasWork()) {
      runReady(wasBusy ? schedule.pace().afterBusyQuery() : schedule.pace().afterCall());
      unattended.left();
    }
  }

  /** Ends a host function: what is behind it goes on even if no call comes. */
  void endHostFunction() {
    unattended.left();
    signalAll();
  }

  boolean isPrompt() {
    return schedule.pace().isPrompt();
  }

  /** The call of this moment gives the answer that work is not done. */
  public void toldBusy() {
    busy = true;
  }

  /** Whether there are operations that wait for no other. */
  public boolean hasWork() {
    return !closed && !(ready.isEmpty() && outside.isEmpty());
  }

  boolean isClosed() {
    return closed;
  }

  /** Whether there is an operation that is not done. */
  boolean isAnyPending() {
    return pending > 0;
  }

  /** A number that changes when an operation is queued or ends. */
  long moves() {
    return queued + finished;
  }

  /** Whether there is work of the device that waits for nothing. */
  boolean canRun() {
    lookedNanos = System.nanoTime() - LOOK_NANOS;
    look();
    return !ready.isEmpty();
  }

  /** The number of calls that ended. */
  public long calls() {
    return calls;
  }

  /** The number of operations that ended. */
  public long finished() {
    return finished;
  }

  /** Puts a queue where its first operation belongs: among the ready, or behind what blocks it. */
  private void arrange(SimQueue queue) {
    SimOp head = queue.peek();
    if (head == null) {
      return;
    }
    SimOp dependency = head.dependency();
    if (dependency != null && !dependency.isDone()) {
      queue.blockedBy = dependency;
      dependency.block(queue);
    } else if (head.outside() != null) {
      outside.add(queue);
    } else {
      ready.add(queue);
    }
  }

  /** Looks at what is outside of the driver: queues that wait for it may be ready now. */
  private void look() {
    long now = System.nanoTime();
    if (outside.isEmpty() || now - lookedNanos < LOOK_NANOS) {
      return;
    }
    lookedNanos = now;
    for (int i = outside.size() - 1; i >= 0; i--) {
      SimQueue queue = outside.get(i);
      BooleanSupplier condition = queue.first().outside();
      if (condition == null || condition.getAsBoolean()) {
        outside.remove(i);
        ready.add(queue);
      }
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
  void awaitProgress(long nanos) {
    boolean idle = hostThread.isIdle();
    if (!idle) {
      hostThread.hurry();
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
  static void awaitNanos(Condition condition, long nanos) {
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
    SimOp head = ready.next(schedule.order());
    if (head.hostFunction() == null) {
      run(head);
    } else if (!awaitHostFunction(head)) {
      ready.remove(head.stream.queue);
    }
    return true;
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
      SimOp head = ready.next(schedule.order());
      if (head.hostFunction() == null) {
        run(head);
        ran++;
      } else {
        hostThread.hurry();
        ready.remove(head.stream.queue);
      }
    }
    return ran;
  }

  private boolean awaitHostFunction(SimOp op) {
    hostThread.hurry();
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
    while (!op.isDone() && op.stream.queue.first() != op) {
      if (!advance(op.stream.queue)) {
        return false;
      }
    }
    return true;
  }

  /** Runs the next operation that a queue needs, of whichever queue; false if it cannot. */
  boolean advance(SimQueue queue) {
    look();
    SimQueue first = queue;
    while (first.blockedBy != null) {
      first = first.blockedBy.stream.queue;
    }
    SimOp head = first.first();
    boolean can = head.hostFunction() == null && !outside.contains(first);
    if (can) {
      run(head);
    }
    return can;
  }

  /** The same with the operation. */
  public boolean runThrough(SimOp op) {
    if (!runUpTo(op)) {
      hostThread.hurry();
      return false;
    }
    if (!op.isDone()) {
      run(op);
    }
    return true;
  }

  /** When the operation that runs was queued; the end of time if none runs. */
  public long queuedNanos() {
    return queuedNanos;
  }

  private void run(SimOp op) {
    SimDevice device = op.stream.device;
    try {
      queuedNanos = op.queuedNanos;
      op.work().run();
      finish(op);
    } catch (SimRefusal e) {
      fail(device, e);
    } catch (OutOfMemoryError | InternalError e) {
      // The heap of this JVM and a file stand for memory; InternalError is a mapped file on a full
      // disk.
      String text = "the simulator needs more heap (-Xmx) or more room for its file: " + e;
      fail(device, new SimRefusal(CudaStatus.UNKNOWN, text));
    } catch (RuntimeException e) {
      fail(device, new SimRefusal(CudaStatus.UNKNOWN, "an operation failed: " + e));
    } finally {
      queuedNanos = Long.MAX_VALUE;
    }
  }

  /** Ends the first operation of a queue. */
  public void finish(SimOp op) {
    SimStream stream = op.stream;
    SimQueue queue = stream.queue;
    ready.remove(queue);
    finished++;
    remove(queue);
    stream.nanos = op.startNanos(stream.nanos) + op.costNanos;
    stream.device.removed(stream);
    wake(op.finish(stream.nanos));
    arrange(queue);
  }

  private SimOp remove(SimQueue queue) {
    SimOp first = queue.remove();
    pending--;
    first.stream.ended();
    fullQueues.signalAll();
    return first;
  }

  /** Ends an operation that was never queued, for those that wait for it. */
  public void drop(SimOp op) {
    wake(op.finish(op.stream.nanos));
  }

  /** What the first operation of a stream waited for outside of the driver holds now. */
  public void pass(SimOp op) {
    if (!op.isDone()) {
      outside.remove(op.stream.queue);
      ready.add(op.stream.queue);
      signalAll();
    }
  }

  /** Goes on with queues that waited; those of a device that failed meanwhile are empty. */
  private void wake(List<SimQueue> queues) {
    for (SimQueue queue : queues) {
      queue.blockedBy = null;
      arrange(queue);
    }
  }

  /** Fails the device for good: what is queued there never runs, and is not waited for. */
  public void fail(SimDevice device, SimRefusal failure) {
    device.fail(failure);
    for (SimQueue queue : device.activeQueues()) {
      ready.remove(queue);
      outside.remove(queue);
      while (!queue.isEmpty()) {
        SimOp op = remove(queue);
        device.removed(op.stream);
        wake(op.finish(op.stream.nanos));
      }
    }
    signalAll();
  }

  /** Drops queued work and wakes the threads that wait for it. */
  public void close() {
    closed = true;
    hostThread.close();
    sharedRecords.close();
    unattended.close();
    standstill.close();
    signalAll();
    fullQueues.signalAll();
  }

  public void signalAll() {
    progress.signalAll();
  }
}

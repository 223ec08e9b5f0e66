package io.cuvette.sim;

import io.cuvette.driver.CudaStatus;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Runs queued operations, only while somebody waits: each time the first operation of a stream
 * chosen by a seeded random from those that are ready. So each seed gives one of the orders that a
 * device could have chosen. The lock is that of the whole driver; all but the lock is guarded by
 * it.
 */
final class SimScheduler {
  // How long a waiting thread lets a host function run before it goes on with other streams: long
  // enough that the order depends on the seed alone unless the function waits for something itself.
  private static final long PATIENCE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

  final ReentrantLock lock = new ReentrantLock();

  private final Condition progress = lock.newCondition();
  private final HostFunctions hostFunctions = new HostFunctions(this);
  private final List<SimStream> ready = new ArrayList<>();
  private final SplittableRandom random;
  private final Consumer<SimOp> waits;
  private boolean closed;

  /** A scheduler that tells of each queued operation that waits for another. */
  SimScheduler(long seed, Consumer<SimOp> waits) {
    this.random = new SplittableRandom(seed);
    this.waits = waits;
  }

  HostFunctions hostFunctions() {
    return hostFunctions;
  }

  /** Queues an operation, behind what the rules of the legacy stream put before it. */
  void submit(SimOp op) {
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
    }
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
    } else {
      stream.readyIndex = ready.size();
      ready.add(stream);
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
  void await(@Nullable SimOp op) {
    if (op != null) {
      awaitUntil(op::isDone);
    }
  }

  void awaitUntil(BooleanSupplier condition) {
    while (!condition.getAsBoolean()) {
      if (closed) {
        throw new SimRefusal(CudaStatus.DEINITIALIZED, "the driver was closed meanwhile");
      }
      if (!step()) {
        if (hostFunctions.isIdle()) {
          throw new IllegalStateException(
              "the simulated device is stuck: a defect of the simulator");
        }
        hostFunctions.hurry();
        progress.awaitUninterruptibly();
      }
    }
  }

  /** Runs one operation, or waits a little for a host function; false if no stream is ready. */
  boolean step() {
    if (ready.isEmpty()) {
      return false;
    }
    SimStream stream = ready.get(random.nextInt(ready.size()));
    SimOp head = stream.queue.element();
    if (head.hostFunction() == null) {
      run(stream, head);
    } else if (!awaitHostFunction(head)) {
      removeReady(stream);
    }
    return true;
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

  /** Runs what is before an operation, whatever the seed, but not the operation. */
  void runUpTo(SimOp op) {
    while (!op.isDone() && op.stream.queue.element() != op) {
      SimStream stream = op.stream;
      while (stream.blockedBy != null) {
        stream = stream.blockedBy.stream;
      }
      run(stream, stream.queue.element());
    }
  }

  private void run(SimStream stream, SimOp op) {
    try {
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
    }
  }

  void finish(SimStream stream, SimOp op) {
    removeReady(stream);
    stream.queue.remove();
    stream.nanos = op.startNanos(stream.nanos) + op.costNanos;
    stream.device.removed(stream);
    wake(op.finish(stream.nanos), op);
    arrange(stream);
  }

  private void wake(List<SimStream> streams, SimOp op) {
    for (SimStream stream : streams) {
      if (stream.blockedBy == op) {
        stream.blockedBy = null;
        arrange(stream);
      }
    }
  }

  /** The device fails for good: what is queued there never runs, and nobody waits for it. */
  void fail(SimDevice device, SimRefusal failure) {
    device.fail(failure);
    for (SimStream stream : device.activeStreams()) {
      removeReady(stream);
      stream.blockedBy = null;
      while (!stream.queue.isEmpty()) {
        SimOp op = stream.queue.remove();
        device.removed(stream);
        wake(op.finish(stream.nanos), op);
      }
    }
    signalAll();
  }

  /** What is queued never runs; those who wait for it are told. */
  void close() {
    closed = true;
    hostFunctions.close();
    signalAll();
  }

  void signalAll() {
    progress.signalAll();
  }
}

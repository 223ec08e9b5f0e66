package io.cuvette.sim.internal.schedule;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimQueue;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import org.jspecify.annotations.Nullable;

/**
 * Fails a device whose shared queues stand still for long although nothing but their order holds
 * some of their work up: on a GPU that would be for ever. Looks on one daemon thread that lives
 * while there is work. Guarded by the driver's lock.
 */
final class Standstill {
  /** So often nothing must have moved: a computer that slept is not taken for a device. */
  private static final int LOOKS = 16;

  private final SimScheduler scheduler;
  private final Condition closing;
  private final boolean shared;
  private final int patienceMillis;
  private @Nullable Thread thread;
  private boolean closed;

  /** The number of operations queued and ended when there was something that could run. */
  private long moved;

  private int looks;

  Standstill(SimScheduler scheduler, boolean shared, int patienceMillis) {
    this.scheduler = scheduler;
    this.closing = scheduler.lock.newCondition();
    this.shared = shared;
    this.patienceMillis = patienceMillis;
  }

  /** There is work that may come to a stand. */
  void watch() {
    if (shared && thread == null && !closed) {
      Thread started =
          Thread.ofPlatform()
              .daemon()
              .name("cuvette-sim-standstill")
              .inheritInheritableThreadLocals(false)
              .unstarted(this::loop);
      started.start();
      thread = started;
    }
  }

  void close() {
    closed = true;
    closing.signalAll();
  }

  private void loop() {
    scheduler.lock.lock();
    try {
      while (!closed && scheduler.isAnyPending()) {
        rest();
        if (!closed) {
          look();
        }
      }
    } catch (InterruptedException e) {
      throw new IllegalStateException("nobody knows this thread", e);
    } finally {
      thread = null;
      scheduler.lock.unlock();
    }
  }

  private void rest() throws InterruptedException {
    long left = TimeUnit.MILLISECONDS.toNanos(patienceMillis) / LOOKS;
    while (!closed && left > 0) {
      left = closing.awaitNanos(left);
    }
  }

  private void look() {
    long moves = scheduler.moves();
    looks = moves == moved && !scheduler.canRun() ? looks + 1 : 0;
    moved = moves;
    if (looks >= LOOKS) {
      looks = 0;
      scheduler.devices().forEach(this::report);
    }
  }

  private void report(SimDevice device) {
    List<String> held =
        device.activeQueues().stream()
            .filter(SimQueue::holdsUpOthers)
            .map(SimQueue::describe)
            .toList();
    if (!held.isEmpty()) {
      String text =
          "nothing moved for %,d ms: %s (as on a GPU, streams share queues of a bounded length)"
              .formatted(patienceMillis, String.join("; ", held));
      scheduler.fail(device, new SimRefusal(CudaStatus.LAUNCH_TIMEOUT, text));
    }
  }
}

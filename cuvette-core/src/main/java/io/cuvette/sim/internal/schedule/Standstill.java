package io.cuvette.sim.internal.schedule;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimQueue;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Fails a device whose shared queues stand still for long although nothing but their order holds
 * some of their work up: on a GPU that would be for ever. Guarded by the driver's lock.
 */
final class Standstill {
  /** So often nothing must have moved: a computer that slept is not taken for a device. */
  private static final int LOOKS = 16;

  private final SimScheduler scheduler;
  private final boolean shared;
  private final int patienceMillis;
  private final SimThread thread;

  /** The number of operations queued and ended when there was something that could run. */
  private long moved;

  private int looks;

  Standstill(SimScheduler scheduler, boolean shared, int patienceMillis) {
    this.scheduler = scheduler;
    this.shared = shared;
    this.patienceMillis = patienceMillis;
    this.thread = new SimThread(scheduler.lock, "cuvette-sim-standstill", this::lookWhilePending);
  }

  /** There is work that may come to a stand. */
  void watch() {
    if (shared) {
      thread.start();
    }
  }

  void close() {
    thread.close();
  }

  private void lookWhilePending() throws InterruptedException {
    while (!thread.isClosed() && scheduler.isAnyPending()) {
      thread.rest(TimeUnit.MILLISECONDS.toNanos(patienceMillis) / LOOKS);
      if (!thread.isClosed()) {
        look();
      }
    }
  }

  private void look() {
    long moves = scheduler.moves();
    looks = moves == moved && !scheduler.canRun() ? looks + 1 : 0;
    moved = moves;
    if (looks >= LOOKS) {
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

package io.cuvette.sim.internal.calls;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.EventCalls;
import io.cuvette.sim.internal.base.HandleKind;
import io.cuvette.sim.internal.base.HandleTable;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.machine.CaptureBranch;
import io.cuvette.sim.internal.machine.SimCosts;
import io.cuvette.sim.internal.machine.SimEvent;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimStream;
import io.cuvette.sim.internal.share.SharedEvent;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/** The calls about events. Thread-safe. */
public final class SimEventCalls implements EventCalls {
  private static final double NANOS_PER_MILLI = 1e6;

  /** The events by their handles. */
  public final HandleTable<SimEvent> all = new HandleTable<>(HandleKind.EVENT, false);

  private final SimMachine machine;

  public SimEventCalls(SimMachine machine) {
    this.machine = machine;
  }

  @Override
  public long eventCreate(int device, int flags) {
    return machine.callLong(
        () -> {
          SimDevice owner = machine.working(device);
          SimEvent.checkFlags(flags);
          return all.add(new SimEvent(owner, flags));
        },
        () -> "cuEventCreate(flags=%d, device=%d)".formatted(flags, device));
  }

  @Override
  public void eventDestroy(int device, long event) {
    machine.run(
        () -> {
          machine.working(device);
          SharedEvent shared = all.remove(event).shared();
          if (shared != null) {
            shared.destroy();
          }
        },
        () -> call("cuEventDestroy", event));
  }

  @Override
  public void eventRecord(int device, long event, long stream) {
    machine.run(
        () -> {
          SharedEvent shared = shared(device, event, stream);
          if (shared == null) {
            record(device, event, stream);
          } else {
            record(device, event, stream, shared);
          }
        },
        () -> "cuEventRecord(event=0x%x, stream=0x%x)".formatted(event, stream));
  }

  /** Publishes a record to other processes; null for an event of this process alone. */
  private @Nullable SharedEvent shared(int device, long event, long stream) {
    boolean captured = machine.stream(machine.working(device), stream).capture != null;
    return captured ? null : all.get(event).shared();
  }

  private void record(int device, long event, long stream, SharedEvent shared) {
    long number = shared.begin(machine::awaitOutside);
    SimOp point = null;
    try {
      // Other threads may have ended the stream or the event meanwhile, or begun a capture.
      point = record(device, event, stream);
    } finally {
      if (point == null) {
        shared.release();
      }
    }
    if (point != null) {
      share(shared, number, point);
    }
  }

  /** The operation of a record; null if it was captured. */
  private @Nullable SimOp record(int device, long handle, long streamHandle) {
    SimStream stream = machine.stream(machine.working(device), streamHandle);
    SimEvent event = all.get(handle);
    if (event.device != stream.device) {
      throw new SimRefusal(
          CudaStatus.INVALID_HANDLE,
          "an event of device %d on a stream of device %d (expected: the same device)"
              .formatted(event.device.index, stream.device.index));
    }
    machine.spend(SimCosts.EVENT_RECORD);
    CaptureBranch branch = CaptureBranch.of(stream);
    if (branch != null) {
      branch.capture.checkValid();
      event.captured(branch.point());
      return null;
    }
    SimOp point = machine.queue(SimOp.point(stream, machine.hostNanos()));
    event.recorded(point);
    return point;
  }

  /** Publishes a record to other processes, and completes it even if no thread here waits. */
  public void share(SharedEvent event, long number, SimOp record) {
    event.record(number, record);
    machine.scheduler.sharedRecords().add(record);
  }

  @Override
  public boolean eventQuery(int device, long event) {
    return machine.call(
        () -> {
          machine.working(device);
          machine.spend(SimCosts.EVENT_QUERY);
          SimEvent queried = all.get(event);
          machine.captures.checkQuery(queried);
          queried.device.checkWorks();
          SimOp record = queried.lastRecord();
          BooleanSupplier foreign = queried.foreignRecord();
          boolean done = foreign == null ? isDone(record, queried.device) : foreign.getAsBoolean();
          if (!done) {
            machine.scheduler.toldBusy();
          } else if (foreign == null && record != null) {
            machine.await(record); // which says when that was
          }
          return done;
        },
        () -> call("cuEventQuery", event));
  }

  private static boolean isDone(@Nullable SimOp record, SimDevice device) {
    device.checkWorks();
    return record == null || record.isDone();
  }

  @Override
  public void eventSynchronize(int device, long event) {
    machine.run(
        () -> {
          machine.working(device);
          SimEvent waited = all.get(event);
          machine.captures.checkQuery(waited);
          SimOp record = waited.lastRecord();
          BooleanSupplier foreign = waited.foreignRecord();
          if (foreign != null) {
            machine.awaitOutside(foreign);
          } else {
            machine.await(record);
          }
          machine.pools.releaseExcess();
          waited.device.checkWorks();
        },
        () -> call("cuEventSynchronize", event));
  }

  @Override
  public float eventElapsedTime(int device, long start, long end) {
    return machine.call(
        () -> {
          machine.working(device);
          SimEvent first = all.get(start);
          SimEvent last = all.get(end);
          machine.captures.checkTimed(first);
          machine.captures.checkTimed(last);
          return elapsed(first, last);
        },
        () -> "cuEventElapsedTime(start=0x%x, end=0x%x)".formatted(start, end));
  }

  private float elapsed(SimEvent start, SimEvent end) {
    if (start.device != end.device) {
      throw new SimRefusal(
          CudaStatus.INVALID_HANDLE,
          "events of devices %d and %d (expected: the same device)"
              .formatted(start.device.index, end.device.index));
    }
    SimOp from = start.timedRecord("start");
    SimOp to = end.timedRecord("end");
    if (!isDone(from, start.device) || !isDone(to, end.device)) {
      machine.scheduler.toldBusy();
      throw new SimRefusal(CudaStatus.NOT_READY, "an event is not done");
    }
    return (float) ((to.endNanos() - from.endNanos()) / NANOS_PER_MILLI);
  }

  private static String call(String name, long event) {
    return "%s(event=0x%x)".formatted(name, event);
  }
}

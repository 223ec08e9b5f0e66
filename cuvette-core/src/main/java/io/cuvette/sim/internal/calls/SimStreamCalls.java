package io.cuvette.sim.internal.calls;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.driver.StreamCalls;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.graph.NodeWork;
import io.cuvette.sim.internal.machine.CaptureBranch;
import io.cuvette.sim.internal.machine.SimCosts;
import io.cuvette.sim.internal.machine.SimEvent;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.memory.SimWord;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimStream;
import io.cuvette.sim.internal.share.SharedEvent;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The calls about streams. Thread-safe. */
public final class SimStreamCalls implements StreamCalls {

  private final SimMachine machine;
  private final SimEventCalls events;

  public SimStreamCalls(SimMachine machine, SimEventCalls events) {
    this.machine = machine;
    this.events = events;
  }

  @Override
  public long streamCreateWithPriority(int device, int flags, int priority) {
    return machine.callLong(
        () -> {
          SimDevice owner = machine.working(device);
          if (flags != 0 && flags != SimStream.NON_BLOCKING) {
            throw SimRefusal.invalidValue("flags: %d (expected: 0 or 1)".formatted(flags));
          }
          // The driver takes a priority out of range as the nearest there is.
          int clamped =
              Math.clamp(
                  priority,
                  SimDeviceCalls.PRIORITIES.greatest(),
                  SimDeviceCalls.PRIORITIES.least());
          machine.spend(SimCosts.STREAM_CREATE);
          machine.memory(owner).pages.addStreams(1);
          return machine.streams.add(new SimStream(owner, machine.nextId(), flags, clamped));
        },
        () ->
            "cuStreamCreateWithPriority(flags=%d, priority=%d, device=%d)"
                .formatted(flags, priority, device));
  }

  @Override
  public void streamDestroy(int device, long stream) {
    machine.run(
        () -> {
          machine.working(device);
          SimStream gone = machine.streams.remove(stream);
          machine.memory(gone.device).pages.addStreams(-1);
          machine.captures.destroyed(gone);
        },
        () -> call("cuStreamDestroy", stream));
  }

  @Override
  public int streamGetPriority(int device, long stream) {
    return machine.call(
        () -> stream(device, stream).priority, () -> call("cuStreamGetPriority", stream));
  }

  @Override
  public int streamGetFlags(int device, long stream) {
    return machine.call(
        () -> described(device, stream).flags, () -> call("cuStreamGetFlags", stream));
  }

  @Override
  public long streamGetId(int device, long stream) {
    return machine.callLong(
        () -> described(device, stream).id, () -> call("cuStreamGetId", stream));
  }

  /** A stream for queries that a driver refuses for a capturing one. */
  private SimStream described(int device, long handle) {
    SimStream stream = stream(device, handle);
    machine.captures.checkCaptured(stream);
    return stream;
  }

  @Override
  public int streamGetDevice(int device, long stream) {
    return machine.call(
        () -> stream(device, stream).device.index, () -> call("cuStreamGetDevice", stream));
  }

  private SimStream stream(int device, long handle) {
    return machine.stream(machine.working(device), handle);
  }

  @Override
  public boolean streamQuery(int device, long stream) {
    return machine.call(
        () -> {
          SimStream queried = stream(device, stream);
          machine.captures.checkQuery(queried);
          machine.spend(SimCosts.STREAM_QUERY);
          boolean done = isDone(queried);
          if (done) {
            machine.spendUntil(queried.nanos);
            machine.observed(queried, queried.lastNumber());
          } else {
            machine.scheduler.toldBusy();
          }
          return done;
        },
        () -> call("cuStreamQuery", stream));
  }

  private static boolean isDone(SimStream stream) {
    return stream.pendingTail() == null && (!stream.isLegacy() || !stream.device.hasBlockingEnds());
  }

  @Override
  public void streamSynchronize(int device, long stream) {
    machine.run(
        () -> {
          SimStream waited = stream(device, stream);
          machine.captures.checkQuery(waited);
          long last = waited.lastNumber();
          machine.spendUntil(waited.nanos);
          machine.await(end(waited));
          machine.observed(waited, last);
          machine.pools.releaseExcess();
          waited.device.checkWorks();
        },
        () -> call("cuStreamSynchronize", stream));
  }

  /** The end of a stream's work; the legacy stream's includes the blocking streams' work so far. */
  private @Nullable SimOp end(SimStream stream) {
    if (stream.isLegacy() && !isDone(stream)) {
      SimOp point = SimOp.point(stream, machine.hostNanos());
      machine.scheduler.submit(point);
      return point;
    }
    return stream.pendingTail();
  }

  @Override
  public void streamWaitEvent(int device, long stream, long event) {
    machine.run(
        () -> waitFor(stream(device, stream), events.all.get(event)),
        () -> "cuStreamWaitEvent(stream=0x%x, event=0x%x)".formatted(stream, event));
  }

  private void waitFor(SimStream stream, SimEvent event) {
    machine.spend(SimCosts.SUBMIT);
    CaptureBranch branch = CaptureBranch.of(stream);
    CaptureBranch.Point point = event.capturedPoint();
    if (point != null) {
      machine.captures.checkLegacy(stream);
      joinCapture(stream, branch, point);
    } else {
      SimOp record = event.lastRecord();
      BooleanSupplier foreign = event.foreignRecord();
      if (branch != null && (record != null || foreign != null)) {
        throw branch.capture.invalidate(
            CudaStatus.STREAM_CAPTURE_ISOLATION, "the event was recorded outside of the capture");
      }
      if (event.shared() != null && foreign != null) {
        waitForForeign(stream, event.shared(), foreign);
      } else if (record != null) {
        machine.queue(SimOp.waiting(stream, record, machine.hostNanos()));
      }
    }
  }

  private void waitForForeign(SimStream stream, SharedEvent event, BooleanSupplier record) {
    SimOp waiting =
        SimOp.waitingOutside(stream, record, () -> {}, machine.hostNanos())
            .waitsFor(() -> "a wait for an event of another process");
    machine.queue(waiting);
    event.retain();
    waiting.whenDone(event::release);
  }

  private static void joinCapture(
      SimStream stream, @Nullable CaptureBranch branch, CaptureBranch.Point point) {
    if (!point.capture().isOpen()) {
      throw SimRefusal.invalidValue("the event belongs to a capture that has ended");
    }
    if (stream.isLegacy()) {
      throw new SimRefusal(
          CudaStatus.CAPTURED_EVENT, "the event belongs to a capture that the stream cannot join");
    }
    point.capture().checkValid();
    if (branch != null && branch.capture != point.capture()) {
      branch.capture.invalidate(CudaStatus.STREAM_CAPTURE_MERGE, "");
      throw point
          .capture()
          .invalidate(CudaStatus.STREAM_CAPTURE_MERGE, "the event belongs to another capture");
    }
    (branch == null ? point.capture().join(stream) : branch).join(point);
  }

  @Override
  public void launchHostFunc(int device, long stream, Runnable function) {
    machine.run(
        () -> {
          SimStream queue = stream(device, stream);
          machine.spend(SimCosts.SUBMIT);
          SimOp op = SimOp.host(queue, function, machine.hostNanos());
          machine.submit(op, () -> NodeWork.of(op, new GraphNodeParams.Host(function)));
        },
        () -> call("cuLaunchHostFunc", stream));
  }

  @Override
  public void streamWaitValue32(int device, long stream, long address, int value, int flags) {
    Supplier<String> call =
        () ->
            "cuStreamWaitValue32(stream=0x%x, address=0x%x, value=%d, flags=%d)"
                .formatted(stream, address, value, flags);
    machine.run(
        () -> {
          SimStream queue = stream(device, stream);
          SimWord word = SimWord.at(machine.place("address", address, Integer.BYTES), address);
          SimWord.checkFlags(flags);
          machine.spend(SimCosts.SUBMIT);
          BooleanSupplier isOver = () -> !word.isLive() || word.satisfies(value, flags);
          SimOp op =
              SimOp.waitingOutside(queue, isOver, word::check, machine.hostNanos()).waitsFor(call);
          machine.submit(
              op, () -> NodeWork.of(op, new GraphNodeParams.Other(GraphNodeType.BATCH_MEM_OP)));
        },
        call);
  }

  private static String call(String name, long stream) {
    return "%s(stream=0x%x)".formatted(name, stream);
  }
}

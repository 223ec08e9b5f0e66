package io.cuvette.sim.internal.calls;

import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.graph.SimGraph;
import io.cuvette.sim.internal.graph.SimNode;
import io.cuvette.sim.internal.machine.CaptureBranch;
import io.cuvette.sim.internal.machine.SimCapture;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.queue.SimStream;
import org.jspecify.annotations.Nullable;

/** The calls about captures. Thread-safe. */
public final class SimCaptureCalls implements CaptureCalls {

  private final SimMachine machine;

  public SimCaptureCalls(SimMachine machine) {
    this.machine = machine;
  }

  @Override
  public void streamBeginCapture(int device, long stream, int mode) {
    machine.run(
        () -> machine.captures.begin(machine.stream(machine.working(device), stream), mode),
        () -> "cuStreamBeginCapture(stream=0x%x, mode=%d)".formatted(stream, mode));
  }

  @Override
  public long streamEndCapture(int device, long stream) {
    return machine.callLong(
        () -> machine.captures.end(machine.stream(machine.working(device), stream)),
        () -> call("cuStreamEndCapture", "stream", stream));
  }

  @Override
  public int streamIsCapturing(int device, long stream) {
    return machine.call(
        () -> info(device, stream).status(), () -> call("cuStreamIsCapturing", "stream", stream));
  }

  @Override
  public CaptureInfo streamGetCaptureInfo(int device, long stream) {
    return machine.call(
        () -> info(device, stream), () -> call("cuStreamGetCaptureInfo", "stream", stream));
  }

  @Override
  public void streamBeginCaptureToGraph(
      int device, long stream, long graph, long[] dependencies, int mode) {
    machine.run(
        () -> {
          SimGraph into = machine.graphs.graphs.get(graph);
          machine.captures.begin(
              machine.stream(machine.working(device), stream),
              mode,
              into,
              into.nodes(dependencies));
        },
        () ->
            "cuStreamBeginCaptureToGraph(stream=0x%x, graph=0x%x, dependencies=%d, mode=%d)"
                .formatted(stream, graph, dependencies.length, mode));
  }

  @Override
  public long[] streamGetCaptureDependencies(int device, long stream) {
    return machine.call(
        () -> {
          CaptureBranch branch = asked(device, stream);
          return branch == null || branch.capture.isInvalidated()
              ? new long[0]
              : SimNode.handles(branch.ends());
        },
        () -> call("cuStreamGetCaptureInfo", "stream", stream));
  }

  @Override
  public void streamUpdateCaptureDependencies(int device, long stream, long[] dependencies) {
    machine.run(
        () -> {
          CaptureBranch branch = CaptureBranch.of(machine.stream(machine.working(device), stream));
          if (branch == null) {
            throw new SimRefusal(CudaStatus.ILLEGAL_STATE, "the stream is not captured");
          }
          branch.capture.checkValid();
          branch.set(branch.capture.graph.nodes(dependencies));
        },
        () ->
            "cuStreamUpdateCaptureDependencies(stream=0x%x, dependencies=%d)"
                .formatted(stream, dependencies.length));
  }

  private @Nullable CaptureBranch asked(int device, long stream) {
    SimStream asked = machine.stream(machine.working(device), stream);
    machine.captures.checkAsked(asked);
    return CaptureBranch.of(asked);
  }

  private CaptureInfo info(int device, long stream) {
    CaptureBranch branch = asked(device, stream);
    if (branch == null) {
      return CaptureInfo.of(0, 0, 0);
    }
    SimCapture capture = branch.capture;
    return CaptureInfo.of(capture.isInvalidated() ? 2 : 1, capture.id, capture.graph.handle);
  }

  private static String call(String name, String parameter, long handle) {
    return "%s(%s=0x%x)".formatted(name, parameter, handle);
  }
}

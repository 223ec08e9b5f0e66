package io.cuvette.sim.internal.calls;

import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CaptureInfo;
import io.cuvette.sim.internal.machine.CaptureBranch;
import io.cuvette.sim.internal.machine.SimCapture;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.schedule.SimStream;

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

  private CaptureInfo info(int device, long stream) {
    SimStream asked = machine.stream(machine.working(device), stream);
    machine.captures.checkAsked(asked);
    CaptureBranch branch = CaptureBranch.of(asked);
    if (branch == null) {
      return CaptureInfo.of(0, 0, 0);
    }
    SimCapture capture = branch.capture;
    return CaptureInfo.of(capture.isInvalidated() ? 2 : 1, capture.id, capture.handle);
  }

  private static String call(String name, String parameter, long handle) {
    return "%s(%s=0x%x)".formatted(name, parameter, handle);
  }
}

package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.UserObject;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import java.util.EnumSet;
import java.util.Set;

/** The part of the sanitizer that watches captures and graphs. Thread-safe. */
public final class SanitizerCaptures implements CaptureCalls {
  /** Errors that end a capture without a graph; after any other it goes on. */
  private static final Set<CudaStatus> ENDED_IN_VAIN =
      EnumSet.of(CudaStatus.STREAM_CAPTURE_INVALIDATED, CudaStatus.STREAM_CAPTURE_UNJOINED);

  private final CaptureCalls calls;
  private final SanitizerCore core;

  public SanitizerCaptures(CudaDriver driver, SanitizerCore core) {
    this.calls = driver.captures();
    this.core = core;
  }

  @Override
  public void streamBeginCapture(int device, long stream, int mode) {
    Lane lane = core.lane("streamBeginCapture", device, stream);
    calls.streamBeginCapture(device, stream, mode);
    core.check(_ -> core.streams.beginCapture(lane));
  }

  @Override
  public long streamEndCapture(int device, long stream) {
    CallTrace site = CallTrace.of("streamEndCapture", "device", device, "stream", stream);
    Lane lane = core.locked(findings -> core.streams.lane(device, stream, site, findings));
    try {
      long graph = calls.streamEndCapture(device, stream);
      core.check(_ -> core.streams.endCapture(lane));
      core.check(_ -> core.streams.graphs.add(graph, true, site));
      return graph;
    } catch (CudaException e) {
      if (ENDED_IN_VAIN.contains(e.status())) {
        core.check(_ -> core.streams.endCapture(lane));
      }
      throw e;
    }
  }

  @Override
  public int streamIsCapturing(int device, long stream) {
    Lane lane = core.lane("streamIsCapturing", device, stream);
    int status = calls.streamIsCapturing(device, stream);
    if (status == 0) {
      core.check(_ -> core.streams.endCapture(lane));
    }
    return status;
  }

  @Override
  public void graphLaunch(int device, long executable, long stream) {
    core.check(_ -> core.memory.hostReads.clear());
    core.unseen(
        core.lane("graphLaunch", device, stream),
        CallTrace.passing("graphLaunch", "stream", stream));
    calls.graphLaunch(device, executable, stream);
  }

  @Override
  public void graphDestroy(long graph) {
    CallTrace site = CallTrace.of("graphDestroy", "graph", graph);
    core.destroy(core.streams.graphs, graph, site, () -> calls.graphDestroy(graph));
  }

  @Override
  public CaptureInfo streamGetCaptureInfo(int device, long stream) {
    return calls.streamGetCaptureInfo(device, stream);
  }

  @Override
  public UserObject userObjectCreate() {
    return calls.userObjectCreate();
  }

  @Override
  public void userObjectRelease(long object) {
    calls.userObjectRelease(object);
  }

  @Override
  public void graphRetainUserObject(long graph, long object) {
    calls.graphRetainUserObject(graph, object);
  }

  @Override
  public long graphInstantiate(int device, long graph) {
    return calls.graphInstantiate(device, graph);
  }

  @Override
  public void graphExecDestroy(long executable) {
    calls.graphExecDestroy(executable);
  }
}

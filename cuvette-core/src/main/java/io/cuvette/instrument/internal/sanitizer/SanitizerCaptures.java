package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.ForwardingCaptures;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import java.util.EnumSet;
import java.util.Set;

/** The part of the sanitizer that watches captures. Thread-safe. */
public final class SanitizerCaptures extends ForwardingCaptures {
  /** Errors that end a capture without a graph; after any other it goes on. */
  private static final Set<CudaStatus> ENDED_IN_VAIN =
      EnumSet.of(CudaStatus.STREAM_CAPTURE_INVALIDATED, CudaStatus.STREAM_CAPTURE_UNJOINED);

  private final CaptureCalls calls;
  private final SanitizerCore core;

  public SanitizerCaptures(CudaDriver driver, SanitizerCore core) {
    super(driver.captures());
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
  public void streamBeginCaptureToGraph(
      int device, long stream, long graph, long[] dependencies, int mode) {
    Lane lane = core.lane("streamBeginCaptureToGraph", device, stream);
    calls.streamBeginCaptureToGraph(device, stream, graph, dependencies, mode);
    core.check(_ -> core.streams.beginCapture(lane));
  }
}

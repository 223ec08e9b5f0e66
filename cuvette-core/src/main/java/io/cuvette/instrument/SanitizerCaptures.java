package io.cuvette.instrument;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.util.EnumSet;
import java.util.Set;

/** The part of the sanitizer that watches captures and graphs. Thread-safe. */
final class SanitizerCaptures extends ForwardingCaptures {
  /** Errors that end a capture without a graph; after any other it goes on. */
  private static final Set<CudaStatus> ENDED_IN_VAIN =
      EnumSet.of(CudaStatus.STREAM_CAPTURE_INVALIDATED, CudaStatus.STREAM_CAPTURE_UNJOINED);

  private final SanitizerCore core;

  SanitizerCaptures(CudaDriver driver, SanitizerCore core) {
    super(driver.captures());
    this.core = core;
  }

  @Override
  public void streamBeginCapture(int device, long stream, int mode) {
    Lane lane = core.lane("streamBeginCapture", device, stream);
    super.streamBeginCapture(device, stream, mode);
    core.check(_ -> core.streams.beginCapture(lane));
  }

  @Override
  public long streamEndCapture(int device, long stream) {
    Site site = Site.of("streamEndCapture", "device", device, "stream", stream);
    Lane lane = core.locked(findings -> core.streams.lane(device, stream, site, findings));
    try {
      long graph = super.streamEndCapture(device, stream);
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
    int status = super.streamIsCapturing(device, stream);
    if (status == 0) {
      core.check(_ -> core.streams.endCapture(lane));
    }
    return status;
  }

  @Override
  public void graphLaunch(int device, long executable, long stream) {
    core.check(_ -> core.memory.hostReads.clear());
    core.unseen(
        core.lane("graphLaunch", device, stream), Site.passing("graphLaunch", "stream", stream));
    super.graphLaunch(device, executable, stream);
  }

  @Override
  public void graphDestroy(long graph) {
    Site site = Site.of("graphDestroy", "graph", graph);
    core.destroy(core.streams.graphs, graph, site, () -> super.graphDestroy(graph));
  }
}

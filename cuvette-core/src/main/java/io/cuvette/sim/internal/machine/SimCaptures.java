package io.cuvette.sim.internal.machine;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.graph.GraphTables;
import io.cuvette.sim.internal.graph.SimGraph;
import io.cuvette.sim.internal.graph.SimNode;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimStream;
import java.util.ArrayList;
import java.util.List;

/**
 * The captures of a driver that go on, and what they forbid: not the calls that are unsafe beside
 * some captures alone, for those run with the capture mode of the thread relaxed, but what
 * contradicts a capture in any mode. Guarded by the driver's lock.
 */
public final class SimCaptures {
  private final GraphTables tables;
  private final List<SimCapture> open = new ArrayList<>();
  private long captures;

  SimCaptures(GraphTables tables) {
    this.tables = tables;
  }

  public void begin(SimStream stream, int mode) {
    checkBegin(stream, mode);
    SimGraph graph = new SimGraph(tables, null);
    open.add(new SimCapture(++captures, stream, mode, graph, List.of(), true));
  }

  /** Begins a capture into a graph that is there already. */
  public void begin(SimStream stream, int mode, SimGraph graph, List<SimNode> first) {
    checkBegin(stream, mode);
    open.add(new SimCapture(++captures, stream, mode, graph, first, false));
  }

  private static void checkBegin(SimStream stream, int mode) {
    if (mode < SimCapture.GLOBAL || mode > SimCapture.RELAXED) {
      throw SimRefusal.invalidValue("mode: %d (expected: 0 to 2)".formatted(mode));
    }
    if (stream.isLegacy()) {
      throw new SimRefusal(
          CudaStatus.STREAM_CAPTURE_UNSUPPORTED, "the legacy default stream cannot be captured");
    }
    if (stream.capture != null) {
      throw new SimRefusal(CudaStatus.ILLEGAL_STATE, "the stream is captured already");
    }
  }

  /** Ends a capture and gives the handle of its graph. */
  public long end(SimStream stream) {
    CaptureBranch branch = CaptureBranch.of(stream);
    if (branch == null) {
      throw new SimRefusal(CudaStatus.ILLEGAL_STATE, "the stream is not captured");
    }
    try {
      return branch.capture.end(stream);
    } finally {
      open.removeIf(capture -> !capture.isOpen());
    }
  }

  public void destroyed(SimStream stream) {
    CaptureBranch branch = CaptureBranch.of(stream);
    if (branch != null) {
      branch.capture.destroyed(stream);
      open.removeIf(capture -> !capture.isOpen());
    }
  }

  /** For calls that wait for or query a stream. */
  public void checkQuery(SimStream stream) {
    checkCaptured(stream);
    checkLegacy(stream);
  }

  /** For calls that query a stream, whatever others do. */
  public void checkCaptured(SimStream stream) {
    CaptureBranch branch = CaptureBranch.of(stream);
    if (branch != null) {
      throw branch.capture.invalidate(
          CudaStatus.STREAM_CAPTURE_UNSUPPORTED, "the stream is captured");
    }
  }

  /** For calls on a stream: the legacy stream would wait for blocking streams that are captured. */
  public void checkLegacy(SimStream stream) {
    if (stream.isLegacy()) {
      for (SimCapture capture : open) {
        if (capture.blocksLegacy(stream.device)) {
          throw capture.invalidate(
              CudaStatus.STREAM_CAPTURE_IMPLICIT,
              "the legacy default stream waits for a stream that is captured");
        }
      }
    }
  }

  /** For calls that wait for or query an event. */
  public void checkQuery(SimEvent event) {
    CaptureBranch.Point point = event.capturedPoint();
    if (point != null && point.capture().isOpen()) {
      point.capture().invalidate();
    }
    checkTimed(event);
  }

  /** For calls that need the time of a record. */
  public void checkTimed(SimEvent event) {
    CaptureBranch.Point point = event.capturedPoint();
    if (point != null) {
      throw new SimRefusal(
          point.capture().isOpen() ? CudaStatus.CAPTURED_EVENT : CudaStatus.INVALID_VALUE,
          "the event was last recorded into a capture, which has no time");
    }
  }

  /** For the question alone whether a stream is captured, which spoils nothing. */
  public void checkAsked(SimStream stream) {
    if (stream.isLegacy() && open.stream().anyMatch(c -> c.blocksLegacy(stream.device))) {
      throw new SimRefusal(
          CudaStatus.STREAM_CAPTURE_IMPLICIT,
          "the legacy default stream waits for a stream that is captured");
    }
  }

  /** For calls that wait for a device. */
  public void checkDevice(SimDevice device) {
    for (SimCapture capture : open) {
      if (capture.touches(device)) {
        throw capture.invalidate(
            CudaStatus.STREAM_CAPTURE_UNSUPPORTED, "a stream of the device is captured");
      }
    }
  }
}

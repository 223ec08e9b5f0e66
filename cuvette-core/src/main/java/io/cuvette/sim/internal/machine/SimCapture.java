package io.cuvette.sim.internal.machine;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.graph.SimGraph;
import io.cuvette.sim.internal.graph.SimNode;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** A capture from its begin to its end. Guarded by the driver's lock. */
public final class SimCapture {
  public static final int GLOBAL = 0;
  public static final int RELAXED = 2;

  /** Names the capture for ever. */
  public final long id;

  /** The graph, which is the driver's until the capture ends unless the program made it. */
  public final SimGraph graph;

  public final SimStream origin;
  private final boolean ownsGraph;
  private final int mode;
  private final Object thread = OsThread.current();
  private final List<SimStream> streams = new ArrayList<>();
  private boolean invalidated;

  /**
   * Begins a capture.
   *
   * @param first what the first operation waits for
   * @param ownsGraph whether the graph ends with a capture that fails
   */
  SimCapture(
      long id, SimStream origin, int mode, SimGraph graph, List<SimNode> first, boolean ownsGraph) {
    this.id = id;
    this.origin = origin;
    this.mode = mode;
    this.graph = graph;
    this.ownsGraph = ownsGraph;
    graph.captured(true);
    join(origin).set(first);
  }

  /** Whether it has not ended yet. */
  public boolean isOpen() {
    CaptureBranch branch = CaptureBranch.of(origin);
    return branch != null && branch.capture == this;
  }

  public boolean isInvalidated() {
    return invalidated;
  }

  private boolean isMine() {
    return thread.equals(OsThread.current());
  }

  public CaptureBranch join(SimStream stream) {
    CaptureBranch branch = new CaptureBranch(this);
    stream.capture = branch;
    streams.add(stream);
    return branch;
  }

  /** A call that a capture does not allow makes it worthless; its end then reports that. */
  public SimRefusal invalidate(CudaStatus status, String text) {
    invalidate();
    return new SimRefusal(status, text + "; this makes the capture invalid");
  }

  /** There is no graph from now on. */
  public void invalidate() {
    if (!invalidated) {
      invalidated = true;
      graph.captured(false);
      if (ownsGraph) {
        graph.destroy();
      }
    }
  }

  public void checkValid() {
    if (invalidated) {
      throw new SimRefusal(
          CudaStatus.STREAM_CAPTURE_INVALIDATED, "a call that is not allowed was made during it");
    }
  }

  public boolean touches(SimDevice device) {
    return streams.stream().anyMatch(stream -> stream.device == device);
  }

  /** Whether a call on the legacy stream of a device would depend on this capture. */
  public boolean blocksLegacy(SimDevice device) {
    return streams.stream().anyMatch(stream -> stream.device == device && stream.isBlocking());
  }

  /**
   * Ends the capture on its stream: the streams run again; what is wrong is reported after that.
   */
  public long end(SimStream stream) {
    if (stream != origin) {
      throw invalidate(CudaStatus.STREAM_CAPTURE_UNMATCHED, "the capture began on another stream");
    }
    if (mode != RELAXED && !isMine()) {
      throw new SimRefusal(
          CudaStatus.STREAM_CAPTURE_WRONG_THREAD, "it began on " + thread + " and is not relaxed");
    }
    SimStream unjoined = unjoined();
    release();
    checkValid();
    if (unjoined != null) {
      invalidate();
      throw new SimRefusal(
          CudaStatus.STREAM_CAPTURE_UNJOINED, "stream id " + unjoined.id + " has unjoined work");
    }
    graph.captured(false);
    return graph.handle;
  }

  private @Nullable SimStream unjoined() {
    CaptureBranch main = CaptureBranch.of(origin);
    Set<SimNode> joined = main == null ? Set.of() : SimGraph.upTo(main.ends());
    for (SimStream stream : streams) {
      CaptureBranch branch = CaptureBranch.of(stream);
      if (branch != null && !joined.containsAll(branch.ends())) {
        return stream;
      }
    }
    return null;
  }

  private void release() {
    for (SimStream stream : streams) {
      stream.capture = null;
    }
  }

  /** The stream is gone: there is no end any more if the capture began there. */
  public void destroyed(SimStream stream) {
    invalidate();
    if (stream == origin) {
      release();
    }
  }
}

package io.cuvette.sim.internal.machine;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.HandleTable;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.schedule.SimDevice;
import io.cuvette.sim.internal.schedule.SimStream;
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

  public final SimGraph graph = new SimGraph();

  /** The handle of the graph, which is the driver's until the capture ends. */
  public final long handle;

  public final SimStream origin;
  private final HandleTable<SimGraph> graphs;
  private final int mode;
  private final Object thread = OsThread.current();
  private final List<SimStream> streams = new ArrayList<>();
  private boolean invalidated;

  public SimCapture(long id, SimStream origin, int mode, HandleTable<SimGraph> graphs) {
    this.id = id;
    this.graphs = graphs;
    this.handle = graphs.add(graph);
    this.origin = origin;
    this.mode = mode;
    join(origin);
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
      graphs.remove(handle).destroy();
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
    return handle;
  }

  private @Nullable SimStream unjoined() {
    CaptureBranch main = CaptureBranch.of(origin);
    Set<SimGraph.Node> joined = main == null ? Set.of() : SimGraph.upTo(main.ends());
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

package io.cuvette.sim.internal.machine;

import io.cuvette.sim.internal.schedule.SimOp;
import io.cuvette.sim.internal.schedule.SimStream;
import io.cuvette.sim.internal.schedule.StreamCapture;
import java.util.LinkedHashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The part of one stream in a capture. Guarded by the driver's lock. */
public final class CaptureBranch implements StreamCapture {
  public final SimCapture capture;

  /** What the next operation of the stream waits for. */
  private final Set<SimGraph.Node> ends = new LinkedHashSet<>();

  /**
   * What an event recorded in a capture stands for. Immutable.
   *
   * @param capture the capture
   * @param ends the operations before the event
   */
  public record Point(SimCapture capture, Set<SimGraph.Node> ends) {}

  public CaptureBranch(SimCapture capture) {
    this.capture = capture;
  }

  /** The part of a stream in a capture; null if it is not captured. */
  public static @Nullable CaptureBranch of(SimStream stream) {
    return (CaptureBranch) stream.capture;
  }

  public void add(SimOp operation) {
    SimGraph.Node node = capture.graph.add(operation, ends);
    ends.clear();
    ends.add(node);
  }

  public Point point() {
    return new Point(capture, Set.copyOf(ends));
  }

  public void join(Point point) {
    ends.addAll(point.ends);
  }

  public Set<SimGraph.Node> ends() {
    return ends;
  }
}

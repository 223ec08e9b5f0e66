package io.cuvette.sim.internal.machine;

import io.cuvette.sim.internal.graph.NodeWork;
import io.cuvette.sim.internal.graph.SimNode;
import io.cuvette.sim.internal.queue.SimStream;
import io.cuvette.sim.internal.queue.StreamCapture;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The part of one stream in a capture. Guarded by the driver's lock. */
public final class CaptureBranch implements StreamCapture {
  public final SimCapture capture;

  /** What the next operation of the stream waits for. */
  private final Set<SimNode> ends = new LinkedHashSet<>();

  /**
   * What an event recorded in a capture stands for. Immutable.
   *
   * @param capture the capture
   * @param ends the operations before the event
   */
  public record Point(SimCapture capture, Set<SimNode> ends) {}

  public CaptureBranch(SimCapture capture) {
    this.capture = capture;
  }

  /** The part of a stream in a capture; null if it is not captured. */
  public static @Nullable CaptureBranch of(SimStream stream) {
    return (CaptureBranch) stream.capture;
  }

  /** The part of a captured stream. */
  public static CaptureBranch capturing(SimStream stream) {
    return Objects.requireNonNull(of(stream));
  }

  /** Records work of the stream. */
  public void add(NodeWork work, int priority) {
    set(List.of(capture.graph.add(work, priority, ends)));
  }

  /** Says what the next operation waits for. */
  public void set(Collection<SimNode> nodes) {
    ends.clear();
    ends.addAll(nodes);
  }

  public Point point() {
    return new Point(capture, Set.copyOf(ends));
  }

  public void join(Point point) {
    ends.addAll(point.ends);
  }

  public Set<SimNode> ends() {
    return ends;
  }
}

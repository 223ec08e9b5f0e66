package io.cuvette.sim.internal.graph;

import io.cuvette.driver.GraphConditionType;
import io.cuvette.sim.internal.queue.SimOp;
import java.util.List;

/** How a launch runs a node. Immutable. */
public sealed interface NodeTask {
  /** No work. */
  NodeTask NOTHING = new Nothing();

  /** No work. */
  record Nothing() implements NodeTask {}

  /**
   * Work that each launch does once more.
   *
   * @param template the work, which never runs itself
   */
  record Work(SimOp template) implements NodeTask {}

  /** A record of an event. */
  record EventRecord(EventPoint event) implements NodeTask {}

  /** A wait for the last record of an event. */
  record EventWait(EventPoint event) implements NodeTask {}

  /** A graph of the node's own. */
  record Child(SimGraph graph) implements NodeTask {}

  /** Memory that is there from now on. */
  record Allocation(GraphBlock block) implements NodeTask {}

  /** Memory that is there no longer. */
  record Free(GraphBlock block) implements NodeTask {}

  /** Graphs of the node's own, of which the condition chooses one. */
  record Conditional(SimCondition condition, GraphConditionType type, List<SimGraph> bodies)
      implements NodeTask {}
}

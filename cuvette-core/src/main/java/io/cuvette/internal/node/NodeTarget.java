package io.cuvette.internal.node;

import io.cuvette.driver.GraphNodeParams;
import io.cuvette.internal.fence.Retained;
import io.cuvette.internal.graph.GraphArena;
import io.cuvette.internal.graph.OpenGraph;
import io.cuvette.internal.session.Device;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** What is told what a node does: a new node of a graph, or one that changes. */
public abstract class NodeTarget {
  /** The device that the graph is for. */
  abstract Device device();

  /** What keeps the memory and the events that the node uses. */
  abstract Retained retained();

  /** The memory that the graph shares with others; null for memory of its own. */
  abstract @Nullable GraphArena memory();

  /** Does something of several steps with what has the node, which does not end meanwhile. */
  abstract <T> T alone(Supplier<T> step);

  /** Refuses a graph that cannot be a node there. */
  void checkChild(OpenGraph child) {}

  /** Makes or changes the node. */
  public abstract NodeId set(GraphNodeParams params);
}

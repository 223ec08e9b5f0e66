package io.cuvette;

import java.util.Objects;

/**
 * An edge of a graph: one node runs before another. Immutable.
 *
 * @param from the node that runs first
 * @param to the node that waits for it
 */
public record GraphDependency(GraphNode from, GraphNode to) {
  /** An edge. */
  public GraphDependency {
    Objects.requireNonNull(from, "from");
    Objects.requireNonNull(to, "to");
  }
}

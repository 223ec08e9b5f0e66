package io.cuvette.driver;

import java.util.List;
import java.util.Objects;

/**
 * A node that was added to a graph. Immutable.
 *
 * @param node CUgraphNode
 * @param address the memory that the launches of an allocation node give; 0 for other nodes
 * @param bodies the graphs of a conditional node, empty ones that belong to the node; none for
 *     other nodes
 */
public record AddedNode(long node, long address, List<Long> bodies) {
  /** A node. */
  public AddedNode {
    bodies = List.copyOf(Objects.requireNonNull(bodies, "bodies"));
  }

  /**
   * {@return a node that has neither memory nor bodies}
   *
   * @param node CUgraphNode
   */
  public static AddedNode plain(long node) {
    return new AddedNode(node, 0, List.of());
  }
}

package io.cuvette;

import io.cuvette.internal.node.NodeTarget;
import java.util.function.Supplier;

/**
 * Changes what a node does, to work of the same type: in its graph, for what is instantiated from
 * now on ({@link GraphNode#update()}), or in an executable, for launches from now on ({@link
 * GraphNode#updateIn}). Thread-safe.
 */
public final class GraphNodeUpdate extends GraphWork {
  private final Supplier<NodeTarget> target;

  GraphNodeUpdate(GraphDefinition definition, Supplier<NodeTarget> target) {
    super(definition);
    this.target = target;
  }

  @Override
  NodeTarget target() {
    return target.get();
  }
}

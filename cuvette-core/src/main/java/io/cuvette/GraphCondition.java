package io.cuvette;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;

/**
 * A number that kernels of a graph set with {@code cudaGraphSetConditional}
 * (CUgraphConditionalHandle), and that one conditional node of it reads. A kernel takes {@link
 * #handle} as a parameter of 8 bytes. Thread-safe.
 */
public final class GraphCondition {
  private final GraphDefinition definition;
  private final long handle;
  private final AtomicBoolean isRead = new AtomicBoolean();

  GraphCondition(GraphDefinition definition, long handle) {
    this.definition = definition;
    this.handle = handle;
  }

  /** {@return the graph, or the body, in which the node is that reads it} */
  public GraphDefinition definition() {
    return definition;
  }

  /** {@return what kernels set it by, as an argument (CUgraphConditionalHandle)} */
  public long handle() {
    return handle;
  }

  /** Adds the node that reads it. */
  GraphNode readBy(GraphDefinition of, Supplier<GraphNode> node) {
    if (of.core() != definition.core()) {
      throw new IllegalArgumentException(
          "condition: %s (expected: one of %s)".formatted(this, of.core()));
    }
    if (!isRead.compareAndSet(false, true)) {
      throw new IllegalArgumentException(
          "condition: %s is read by another node (expected: one for each)".formatted(this));
    }
    boolean added = false;
    try {
      GraphNode made = node.get();
      added = true;
      return made;
    } finally {
      isRead.set(added);
    }
  }

  @Override
  public String toString() {
    return "condition 0x%x of %s".formatted(handle, definition.core());
  }
}

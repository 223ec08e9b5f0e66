package io.cuvette.sim;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Operations with what each must wait for, as captured. Guarded by the driver's lock. */
final class SimGraph {
  private final List<Node> nodes = new ArrayList<>();

  /** An operation of a graph. */
  static final class Node {
    final SimOp operation;
    final List<Node> dependencies;

    Node(SimOp operation, List<Node> dependencies) {
      this.operation = operation;
      this.dependencies = dependencies;
    }
  }

  Node add(SimOp operation, Collection<Node> dependencies) {
    Node node = new Node(operation, List.copyOf(dependencies));
    nodes.add(node);
    return node;
  }

  int size() {
    return nodes.size();
  }

  /** The nodes that some nodes wait for, directly or not, and these themselves. */
  static Set<Node> upTo(Collection<Node> ends) {
    Set<Node> found = new HashSet<>(ends);
    List<Node> open = new ArrayList<>(ends);
    while (!open.isEmpty()) {
      for (Node dependency : open.removeLast().dependencies) {
        if (found.add(dependency)) {
          open.add(dependency);
        }
      }
    }
    return found;
  }
}

package io.cuvette.sim.internal.machine;

import io.cuvette.sim.internal.schedule.SimOp;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Operations with what each must wait for, as captured. Guarded by the driver's lock. */
public final class SimGraph {
  /** Each after those it waits for. */
  private final List<Node> nodes = new ArrayList<>();

  private final List<SimUserObject> objects = new ArrayList<>();

  /** An operation of a graph. */
  public static final class Node {
    public final SimOp operation;
    public final List<Node> dependencies;

    public Node(SimOp operation, List<Node> dependencies) {
      this.operation = operation;
      this.dependencies = dependencies;
    }
  }

  public Node add(SimOp operation, Collection<Node> dependencies) {
    Node node = new Node(operation, List.copyOf(dependencies));
    nodes.add(node);
    return node;
  }

  public int size() {
    return nodes.size();
  }

  /** Takes one reference to an object over. */
  public void retain(SimUserObject object) {
    objects.add(object);
  }

  /** An executable of what the graph has now, with references of its own. */
  public SimExecutable instantiate() {
    objects.forEach(SimUserObject::retain);
    return new SimExecutable(nodes.stream().map(node -> node.operation).toList(), objects);
  }

  public void destroy() {
    objects.forEach(SimUserObject::release);
    objects.clear();
  }

  /** The nodes that some nodes wait for, directly or not, and these themselves. */
  public static Set<Node> upTo(Collection<Node> ends) {
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

package io.cuvette.sim.internal.graph;

import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.sim.internal.base.SimRefusal;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.Set;

/** A node of a graph. Guarded by the driver's lock. */
public final class SimNode {
  public final SimGraph graph;
  public final long handle;
  private final Set<SimNode> dependencies = new LinkedHashSet<>();
  private final Set<SimNode> dependents = new LinkedHashSet<>();
  private NodeWork work;
  private int priority;

  SimNode(SimGraph graph, GraphTables tables, NodeWork work, int priority) {
    this.graph = graph;
    this.work = work;
    this.priority = priority;
    this.handle = tables.nodes.add(this);
  }

  public NodeWork work() {
    return work;
  }

  public GraphNodeType type() {
    return work.type();
  }

  /** Changes what the node does, to something of the same type. */
  public void work(NodeWork changed) {
    work = changed;
  }

  /** Refuses parameters of another type, and nodes whose parameters stay. */
  public void checkChange(GraphNodeParams params, boolean mayBeChild) {
    boolean can =
        switch (type()) {
          case KERNEL, MEMCPY, MEMSET, HOST, WAIT_EVENT, EVENT_RECORD -> true;
          case GRAPH -> mayBeChild;
          default -> false;
        };
    if (!can || params.type() != type() || params instanceof GraphNodeParams.Other) {
      throw SimRefusal.invalidValue(
          "parameters of type %s for a node of type %s (expected: %s)"
              .formatted(
                  params.type(), type(), can ? "the same type" : "none: they cannot change"));
    }
  }

  public int priority() {
    checkKernel();
    return priority;
  }

  public void priority(int value) {
    checkKernel();
    priority = value;
  }

  /** The priority, which counts for kernels alone. */
  int anyPriority() {
    return priority;
  }

  private void checkKernel() {
    if (type() != GraphNodeType.KERNEL) {
      throw SimRefusal.invalidValue(
          "node: 0x%x of type %s (expected: a kernel)".formatted(handle, type()));
    }
  }

  public static long[] handles(Collection<SimNode> nodes) {
    return nodes.stream().mapToLong(node -> node.handle).toArray();
  }

  public Collection<SimNode> dependencies() {
    return dependencies;
  }

  public Collection<SimNode> dependents() {
    return dependents;
  }

  boolean dependsOn(SimNode from) {
    return dependencies.contains(from);
  }

  void addDependency(SimNode from) {
    dependencies.add(from);
    from.dependents.add(this);
  }

  void removeDependency(SimNode from) {
    dependencies.remove(from);
    from.dependents.remove(this);
  }
}

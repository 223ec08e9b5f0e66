package io.cuvette.sim.internal.graph;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphEdge;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.SimDevice;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Work with what each part of it must wait for. Guarded by the driver's lock. */
public final class SimGraph {
  public final long handle;

  /** The graph in whose node this one is; null for one that a program made. */
  private final @Nullable SimGraph parent;

  private final GraphTables tables;
  private final Set<SimNode> nodes = new LinkedHashSet<>();
  private final List<SimUserObject> objects = new ArrayList<>();
  private final List<SimCondition> conditions = new ArrayList<>();

  /** The memory of its allocation nodes. */
  private final List<GraphBlock> blocks = new ArrayList<>();

  /** The copies of the nodes of the graph that this one was cloned from. */
  private final Map<SimNode, SimNode> copies = new HashMap<>();

  private int executables;

  /** Whether a capture adds nodes. */
  private boolean captured;

  private boolean destroyed;

  public SimGraph(GraphTables tables, @Nullable SimGraph parent) {
    this.tables = tables;
    this.parent = parent;
    this.handle = tables.graphs.add(this);
    if (parent == null) {
      tables.count(1);
    }
  }

  /** Whether it is inside a node, and ends with that. */
  public boolean isInside() {
    return parent != null;
  }

  /** Whether it is another graph, or inside that. */
  public boolean isWithin(SimGraph outer) {
    for (SimGraph each = this; each != null; each = each.parent) {
      if (each == outer) {
        return true;
      }
    }
    return false;
  }

  public int size() {
    return nodes.size();
  }

  public Collection<SimNode> nodes() {
    return nodes;
  }

  public List<SimNode> roots() {
    return nodes.stream().filter(node -> node.dependencies().isEmpty()).toList();
  }

  /** The nodes that no other waits for. */
  public List<SimNode> ends() {
    return nodes.stream().filter(node -> node.dependents().isEmpty()).toList();
  }

  /** A capture into this graph starts or ends. */
  public void captured(boolean starts) {
    if (starts) {
      checkNotCaptured();
    }
    captured = starts;
  }

  /** Refuses what cannot be done with a graph that a capture still adds nodes to. */
  public void checkNotCaptured() {
    if (captured) {
      throw SimRefusal.invalidValue(
          "graph 0x%x is being captured (expected: the capture has ended)".formatted(handle));
    }
  }

  /** What it retains, and the graphs inside. */
  List<SimUserObject> allObjects() {
    List<SimUserObject> all = new ArrayList<>(objects);
    forEachInside(graph -> all.addAll(graph.allObjects()));
    return all;
  }

  /** The conditions of it and of the graphs inside. */
  List<SimCondition> allConditions() {
    List<SimCondition> all = new ArrayList<>(conditions);
    forEachInside(graph -> all.addAll(graph.allConditions()));
    return all;
  }

  private void forEachInside(Consumer<SimGraph> action) {
    nodes.forEach(node -> node.work().graphs().forEach(action));
  }

  public List<GraphBlock> blocks() {
    return blocks;
  }

  public boolean hasMemory() {
    return nodes.stream().anyMatch(node -> node.work().isMemory());
  }

  public SimNode add(NodeWork work, int priority, Collection<SimNode> dependencies) {
    SimNode node = new SimNode(this, tables, work, priority);
    nodes.add(node);
    dependencies.forEach(node::addDependency);
    switch (work.task()) {
      case NodeTask.Allocation allocation -> {
        blocks.add(allocation.block());
        allocation.block().allocatedBy(this);
      }
      case NodeTask.Free free -> free.block().freedBy(this);
      case NodeTask.Conditional conditional -> conditional.condition().readBy(node);
      default -> {}
    }
    return node;
  }

  /** The nodes of handles, which must be of this graph and differ. */
  public List<SimNode> nodes(long[] handles) {
    Set<SimNode> found = new LinkedHashSet<>();
    for (long each : handles) {
      SimNode node = node(each);
      if (!found.add(node)) {
        throw SimRefusal.invalidValue("node: 0x%x is named twice".formatted(each));
      }
    }
    return List.copyOf(found);
  }

  private SimNode node(long nodeHandle) {
    SimNode node = tables.nodes.get(nodeHandle);
    if (node.graph != this) {
      throw SimRefusal.invalidValue(
          "node: 0x%x of graph 0x%x (expected: of graph 0x%x)"
              .formatted(nodeHandle, node.graph.handle, handle));
    }
    return node;
  }

  public List<GraphEdge> edges() {
    List<GraphEdge> edges = new ArrayList<>();
    for (SimNode node : nodes) {
      for (SimNode from : node.dependencies()) {
        edges.add(new GraphEdge(from.handle, node.handle));
      }
    }
    return edges;
  }

  /** Adds edges, or none of them. As in CUDA a cycle is found when the graph is instantiated. */
  public void addEdges(List<GraphEdge> edges) {
    Set<GraphEdge> seen = new HashSet<>();
    for (GraphEdge edge : edges) {
      SimNode from = node(edge.from());
      if (edge.from() == edge.to()) {
        throw SimRefusal.invalidValue("edge from 0x%x to itself".formatted(edge.from()));
      }
      if (node(edge.to()).dependsOn(from) || !seen.add(edge)) {
        throw SimRefusal.invalidValue(
            "edge from 0x%x to 0x%x is there already".formatted(edge.from(), edge.to()));
      }
    }
    forEach(edges, (from, to) -> to.addDependency(from));
  }

  /** Removes edges, or none of them. */
  public void removeEdges(List<GraphEdge> edges) {
    checkNoMemory("edges cannot be removed");
    Set<GraphEdge> seen = new HashSet<>();
    for (GraphEdge edge : edges) {
      if (!node(edge.to()).dependsOn(node(edge.from())) || !seen.add(edge)) {
        throw SimRefusal.invalidValue(
            "edge from 0x%x to 0x%x is not there".formatted(edge.from(), edge.to()));
      }
    }
    forEach(edges, (from, to) -> to.removeDependency(from));
  }

  private void forEach(List<GraphEdge> edges, BiConsumer<SimNode, SimNode> action) {
    edges.forEach(edge -> action.accept(node(edge.from()), node(edge.to())));
  }

  private void checkNoMemory(String rule) {
    if (hasMemory()) {
      throw new SimRefusal(
          CudaStatus.NOT_SUPPORTED,
          "graph 0x%x has nodes that allocate or free: %s".formatted(handle, rule));
    }
  }

  public void remove(SimNode node) {
    checkNotCaptured();
    checkNoMemory("nodes cannot be destroyed");
    List.copyOf(node.dependencies()).forEach(node::removeDependency);
    List.copyOf(node.dependents()).forEach(after -> after.removeDependency(node));
    nodes.remove(node);
    end(node);
  }

  private void end(SimNode node) {
    tables.nodes.remove(node.handle);
    node.work().graphs().forEach(SimGraph::destroy);
    switch (node.work().task()) {
      case NodeTask.Conditional conditional -> conditional.condition().readBy(null);
      case NodeTask.Free free -> free.block().notFreedBy(this);
      default -> {}
    }
  }

  /** Takes one reference to an object over. */
  public void retain(SimUserObject object) {
    objects.add(object);
  }

  /** Makes the value that a conditional node of this graph, or inside it, will read. */
  public SimCondition condition(SimDevice device, int defaultValue, boolean assignsDefault) {
    SimCondition condition = new SimCondition(tables, this, device, defaultValue, assignsDefault);
    conditions.add(condition);
    return condition;
  }

  /** Refuses to copy what CUDA does not copy, in the graphs inside as well. */
  public void checkCopies() {
    checkNoMemory("it cannot be cloned");
    for (SimNode node : nodes) {
      if (node.work().task() instanceof NodeTask.Conditional) {
        throw new SimRefusal(
            CudaStatus.NOT_SUPPORTED,
            "graph 0x%x has the conditional node 0x%x: it cannot be cloned"
                .formatted(handle, node.handle));
      }
      node.work().graphs().forEach(SimGraph::checkCopies);
    }
  }

  /** A copy, which is inside another graph or of its own. */
  public SimGraph copy(@Nullable SimGraph inside) {
    checkCopies();
    SimGraph copy = new SimGraph(tables, inside);
    for (SimNode node : nodes) {
      copy.copies.put(node, copy.add(copied(node.work(), copy), node.anyPriority(), List.of()));
    }
    for (SimNode node : nodes) {
      SimNode to = copy.copyOf(node);
      node.dependencies().forEach(from -> to.addDependency(copy.copyOf(from)));
    }
    objects.forEach(SimUserObject::retain);
    objects.forEach(copy::retain);
    return copy;
  }

  private static NodeWork copied(NodeWork work, SimGraph copy) {
    return work.task() instanceof NodeTask.Child child
        ? NodeWork.child(work.device(), child.graph().copy(copy))
        : work;
  }

  /** The copy of a node in this clone. */
  public SimNode copyOf(SimNode node) {
    SimNode copy = copies.get(node);
    if (copy == null || !nodes.contains(copy)) {
      throw SimRefusal.invalidValue(
          "node: 0x%x has no copy in graph 0x%x".formatted(node.handle, handle));
    }
    return copy;
  }

  /**
   * The nodes, each after those that it waits for; those of a cycle, and behind it, are left out.
   */
  public List<SimNode> ordered() {
    Map<SimNode, Integer> open = new HashMap<>();
    ArrayDeque<SimNode> ready = new ArrayDeque<>();
    for (SimNode node : nodes) {
      open.put(node, node.dependencies().size());
      if (node.dependencies().isEmpty()) {
        ready.add(node);
      }
    }
    List<SimNode> ordered = new ArrayList<>(nodes.size());
    while (!ready.isEmpty()) {
      SimNode node = ready.remove();
      ordered.add(node);
      for (SimNode after : node.dependents()) {
        if (open.merge(after, -1, Integer::sum) == 0) {
          ready.add(after);
        }
      }
    }
    return ordered;
  }

  /** The nodes that some nodes wait for, directly or not, and these themselves. */
  public static Set<SimNode> upTo(Collection<SimNode> ends) {
    Set<SimNode> found = new HashSet<>(ends);
    List<SimNode> open = new ArrayList<>(ends);
    while (!open.isEmpty()) {
      for (SimNode dependency : open.removeLast().dependencies()) {
        if (found.add(dependency)) {
          open.add(dependency);
        }
      }
    }
    return found;
  }

  /** Refuses a second executable of a graph with memory or conditions, which are there once. */
  void checkInstantiates() {
    if (executables > 0) {
      String rule = "there is an executable already, which has to be destroyed first";
      checkNoMemory(rule);
      if (!allConditions().isEmpty()) {
        throw new SimRefusal(
            CudaStatus.NOT_SUPPORTED, "graph 0x%x has conditions: %s".formatted(handle, rule));
      }
    }
  }

  /** An executable of this graph is there. */
  void instantiated() {
    executables++;
  }

  /** An executable of this graph is gone, and runs no longer. */
  void executableEnded() {
    executables--;
    endBlocks();
  }

  public void destroy() {
    tables.graphs.remove(handle);
    if (parent == null) {
      tables.count(-1);
    }
    destroyed = true;
    nodes.forEach(this::end);
    nodes.clear();
    copies.clear();
    objects.forEach(SimUserObject::release);
    objects.clear();
    conditions.forEach(SimCondition::release);
    conditions.clear();
    endBlocks();
  }

  /** Whether its memory can be allocated no more. */
  boolean isGone() {
    return destroyed && executables == 0;
  }

  private void endBlocks() {
    List.copyOf(blocks).forEach(GraphBlock::endIfUnused);
  }
}

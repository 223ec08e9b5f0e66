package io.cuvette.sim.internal.graph;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** The nodes of an executable, or of a graph inside it. Immutable but for what they do. */
final class ExecGraph {
  /** In the order in which they were added to the graph. */
  final List<ExecNode> nodes;

  /** Each after those that it waits for. */
  final List<ExecNode> ordered;

  /** Those that no other waits for. */
  final List<ExecNode> ends;

  private ExecGraph(List<ExecNode> nodes, List<ExecNode> ordered, List<ExecNode> ends) {
    this.nodes = nodes;
    this.ordered = ordered;
    this.ends = ends;
  }

  /** What a graph has now; it has no cycle. */
  static ExecGraph of(SimGraph graph) {
    Map<SimNode, ExecNode> made = new HashMap<>();
    List<ExecNode> ordered = new ArrayList<>(graph.size());
    for (SimNode node : graph.ordered()) {
      ExecNode copy = new ExecNode(node, node.dependencies().stream().map(made::get).toList());
      made.put(node, copy);
      ordered.add(copy);
    }
    return new ExecGraph(
        graph.nodes().stream().map(made::get).toList(),
        List.copyOf(ordered),
        graph.ends().stream().map(made::get).toList());
  }

  /** Does something with all nodes, also with those of the graphs inside. */
  void forEach(Consumer<ExecNode> action) {
    for (ExecNode node : ordered) {
      action.accept(node);
      node.graphs.forEach(inside -> inside.forEach(action));
    }
  }
}

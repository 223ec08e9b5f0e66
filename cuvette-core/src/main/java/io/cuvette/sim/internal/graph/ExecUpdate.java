package io.cuvette.sim.internal.graph;

import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphUpdateResult;
import io.cuvette.sim.internal.base.SimRefusal;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Changes what the nodes of an executable do: all changes are checked before the first is made.
 * Confined to one call.
 */
public final class ExecUpdate {
  private static final GraphUpdateResult FITS = new GraphUpdateResult(0, 0, 0);
  private static final int TOPOLOGY = 2;
  private static final int TYPE = 3;
  private static final int PARAMETERS = 5;
  private static final int FUNCTION = 7;
  private static final int ATTRIBUTES = 8;

  private final SimExecutable executable;
  private final Map<ExecNode, NodeWork> changes = new LinkedHashMap<>();

  private ExecUpdate(SimExecutable executable) {
    this.executable = executable;
  }

  /** Gives an executable what the nodes of a graph of the same topology do. */
  public static GraphUpdateResult all(SimExecutable executable, SimGraph graph) {
    ExecUpdate update = new ExecUpdate(executable);
    GraphUpdateResult result = update.compare(executable.graph, graph);
    if (result == FITS) {
      update.make();
      executable.updatedTo(graph);
    }
    return result;
  }

  /** Changes one node that has no graph inside. */
  public static void one(SimExecutable executable, SimNode node, NodeWork work) {
    ExecNode changed = executable.node(node);
    int result = reason(changed.work(), work);
    if (result != 0) {
      throw SimRefusal.invalidValue(
          "node: 0x%x cannot be changed to %s (CUgraphExecUpdateResult %d)"
              .formatted(node.handle, work.params(), result));
    }
    changed.work(work);
  }

  /** Gives the graph inside a node what the nodes of another graph do. */
  public static void child(SimExecutable executable, SimNode node, SimGraph graph) {
    ExecUpdate update = new ExecUpdate(executable);
    GraphUpdateResult result = update.compare(executable.node(node).graphs.getFirst(), graph);
    if (result != FITS) {
      throw SimRefusal.invalidValue(
          "graph: 0x%x does not fit node 0x%x (%s)".formatted(graph.handle, node.handle, result));
    }
    update.make();
    executable.retainAlso(graph);
  }

  private void make() {
    changes.forEach(ExecNode::work);
  }

  private GraphUpdateResult compare(ExecGraph of, SimGraph to) {
    if (of.nodes.size() != to.size()) {
      return new GraphUpdateResult(TOPOLOGY, 0, 0);
    }
    Map<SimNode, ExecNode> pairs = new HashMap<>();
    List<SimNode> nodes = new ArrayList<>(to.nodes());
    for (int i = 0; i < nodes.size(); i++) {
      pairs.put(nodes.get(i), of.nodes.get(i));
    }
    for (int i = 0; i < nodes.size(); i++) {
      GraphUpdateResult result = compare(of.nodes.get(i), nodes.get(i), pairs);
      if (result != FITS) {
        return result;
      }
    }
    return FITS;
  }

  private GraphUpdateResult compare(ExecNode of, SimNode to, Map<SimNode, ExecNode> pairs) {
    if (of.dependencies.size() != to.dependencies().size()) {
      return new GraphUpdateResult(TOPOLOGY, to.handle, 0);
    }
    for (SimNode from : to.dependencies()) {
      if (!of.dependencies.contains(pairs.get(from))) {
        return new GraphUpdateResult(TOPOLOGY, to.handle, from.handle);
      }
    }
    boolean prioritised = (executable.flags & SimExecutable.NODE_PRIORITIES) != 0;
    int reason = reason(of.work(), to.work());
    if (reason == 0 && prioritised && of.source.anyPriority() != to.anyPriority()) {
      reason = ATTRIBUTES;
    }
    if (reason != 0) {
      return new GraphUpdateResult(reason, to.handle, 0);
    }
    changes.put(of, to.work());
    List<SimGraph> inside = to.work().graphs();
    for (int i = 0; i < inside.size(); i++) {
      GraphUpdateResult result = compare(of.graphs.get(i), inside.get(i));
      if (result != FITS) {
        return result;
      }
    }
    return FITS;
  }

  /** Why a node cannot do something else in an executable; 0 if it can. */
  private static int reason(NodeWork of, NodeWork to) {
    if (of.type() != to.type()) {
      return TYPE;
    }
    return switch (of.type()) {
      case KERNEL -> kernelReason(of, to);
      case MEMCPY, MEMSET -> of.touched().equals(to.touched()) ? 0 : PARAMETERS;
      case MEM_ALLOC, MEM_FREE -> of.params().equals(to.params()) ? 0 : PARAMETERS;
      case CONDITIONAL -> conditionalReason(of, to);
      default -> 0;
    };
  }

  private static int kernelReason(NodeWork of, NodeWork to) {
    if (of.device() != to.device()) {
      return FUNCTION;
    }
    return of.params() instanceof GraphNodeParams.Kernel before
            && to.params() instanceof GraphNodeParams.Kernel after
            && before.shape().cooperative() != after.shape().cooperative()
        ? ATTRIBUTES
        : 0;
  }

  private static int conditionalReason(NodeWork of, NodeWork to) {
    return of.task() instanceof NodeTask.Conditional before
            && to.task() instanceof NodeTask.Conditional after
            && before.type() == after.type()
            && before.bodies().size() == after.bodies().size()
        ? 0
        : PARAMETERS;
  }
}

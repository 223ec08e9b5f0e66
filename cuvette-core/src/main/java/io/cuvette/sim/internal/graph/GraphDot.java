package io.cuvette.sim.internal.graph;

import io.cuvette.driver.GraphNodeParams;

/** Describes graphs in the language DOT. Stateless. */
public final class GraphDot {
  private static final int VERBOSE = 1;
  private static final int KERNELS = 1 << 2;
  private static final int COPIES = 1 << 3;
  private static final int FILLS = 1 << 4;
  private static final int HOSTS = 1 << 5;
  private static final int EVENTS = 1 << 6;
  private static final int KERNEL_ATTRIBUTES = 1 << 9;
  private static final int HANDLES = 1 << 10;
  private static final int ALLOCATIONS = 1 << 11;
  private static final int FREES = 1 << 12;
  private static final int CONDITIONALS = 1 << 15;

  private final StringBuilder text = new StringBuilder();
  private final int flags;

  private GraphDot(int flags) {
    this.flags = flags;
  }

  /** A graph, with what the flags (CUgraphDebugDot_flags) ask for; others mean nothing. */
  public static String of(SimGraph graph, int flags) {
    GraphDot dot = new GraphDot(flags);
    dot.text.append("digraph dot {\n");
    dot.add(graph, "  ");
    return dot.text.append("}\n").toString();
  }

  private void add(SimGraph graph, String indent) {
    String inner = indent + "  ";
    text.append("%ssubgraph \"cluster_%x\" {\n".formatted(indent, graph.handle))
        .append("%slabel=\"graph_%x\"\n".formatted(inner, graph.handle));
    for (SimNode node : graph.nodes()) {
      text.append(
          "%s\"node_%x\" [shape=box, label=\"%s\"]\n".formatted(inner, node.handle, label(node)));
      node.work().graphs().forEach(inside -> add(inside, inner));
    }
    for (SimNode node : graph.nodes()) {
      for (SimNode from : node.dependencies()) {
        text.append("%s\"node_%x\" -> \"node_%x\"\n".formatted(inner, from.handle, node.handle));
      }
    }
    text.append(indent).append("}\n");
  }

  private String label(SimNode node) {
    StringBuilder label = new StringBuilder(node.type().name());
    if (has(HANDLES)) {
      label.append("\\n0x%x".formatted(node.handle));
    }
    GraphNodeParams params = node.work().params();
    if (has(flag(params))) {
      label.append("\\n").append(params.toString().replace("\"", "\\\""));
    }
    if (params instanceof GraphNodeParams.Kernel && has(KERNEL_ATTRIBUTES)) {
      label.append("\\npriority %d".formatted(node.priority()));
    }
    return label.toString();
  }

  private boolean has(int flag) {
    return flag != 0 && (flags & (VERBOSE | flag)) != 0;
  }

  private static int flag(GraphNodeParams params) {
    return switch (params) {
      case GraphNodeParams.Kernel _ -> KERNELS;
      case GraphNodeParams.Copy _ -> COPIES;
      case GraphNodeParams.Fill _ -> FILLS;
      case GraphNodeParams.Host _ -> HOSTS;
      case GraphNodeParams.EventRecord _, GraphNodeParams.EventWait _ -> EVENTS;
      case GraphNodeParams.Allocation _ -> ALLOCATIONS;
      case GraphNodeParams.Free _ -> FREES;
      case GraphNodeParams.Conditional _ -> CONDITIONALS;
      default -> 0;
    };
  }
}

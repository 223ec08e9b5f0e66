package io.cuvette.sim.internal.graph;

import io.cuvette.sim.internal.base.SimRefusal;
import java.util.List;

/** A node of an executable. Guarded by the driver's lock. */
final class ExecNode {
  /** The node that it was instantiated from, whose handle names it. */
  final SimNode source;

  /** Those that it waits for, each an earlier one in the order of the graph. */
  final List<ExecNode> dependencies;

  /** The graphs inside. */
  final List<ExecGraph> graphs;

  /** What the bodies of a conditional node run in. */
  final Lanes lanes = new Lanes();

  private NodeWork work;
  private boolean enabled = true;

  ExecNode(SimNode source, List<ExecNode> dependencies) {
    this.source = source;
    this.dependencies = dependencies;
    this.work = source.work();
    this.graphs = work.graphs().stream().map(ExecGraph::of).toList();
  }

  NodeWork work() {
    return work;
  }

  void work(NodeWork changed) {
    work = changed;
  }

  boolean isEnabled() {
    checkCanBeDisabled();
    return enabled;
  }

  void enable(boolean enable) {
    checkCanBeDisabled();
    enabled = enable;
  }

  /** What the next launch does. */
  NodeTask task() {
    return enabled ? work.task() : NodeTask.NOTHING;
  }

  private void checkCanBeDisabled() {
    switch (work.type()) {
      case KERNEL, MEMCPY, MEMSET -> {}
      default ->
          throw SimRefusal.invalidValue(
              "node: 0x%x of type %s (expected: a kernel, copy or fill)"
                  .formatted(source.handle, work.type()));
    }
  }
}

package io.cuvette.sim.internal.graph;

import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import java.util.List;

/**
 * What a node does. Immutable.
 *
 * @param device where
 * @param params what programs read
 * @param task what a launch does
 * @param touched the devices of the memory that it names, -1 for the host; in order
 */
public record NodeWork(
    SimDevice device, GraphNodeParams params, NodeTask task, List<Integer> touched) {

  /** What touches no memory, or any. */
  public NodeWork(SimDevice device, GraphNodeParams params, NodeTask task) {
    this(device, params, task, List.of());
  }

  /** Work of a stream. */
  public static NodeWork of(SimOp operation, GraphNodeParams params) {
    return new NodeWork(operation.stream.device, params, new NodeTask.Work(operation));
  }

  public static NodeWork child(SimDevice device, SimGraph graph) {
    return new NodeWork(device, new GraphNodeParams.Child(graph.handle), new NodeTask.Child(graph));
  }

  public static NodeWork allocation(SimDevice device, GraphBlock block) {
    return new NodeWork(device, block.params(), new NodeTask.Allocation(block));
  }

  public static NodeWork free(SimDevice device, GraphBlock block) {
    return new NodeWork(
        device, new GraphNodeParams.Free(block.address()), new NodeTask.Free(block));
  }

  public static NodeWork empty(SimDevice device) {
    return new NodeWork(device, new GraphNodeParams.Empty(), NodeTask.NOTHING);
  }

  public GraphNodeType type() {
    return params.type();
  }

  /** The graphs inside the node. */
  public List<SimGraph> graphs() {
    return switch (task) {
      case NodeTask.Child child -> List.of(child.graph());
      case NodeTask.Conditional conditional -> conditional.bodies();
      default -> List.of();
    };
  }

  /** Whether it allocates or frees. */
  public boolean isMemory() {
    return task instanceof NodeTask.Allocation || task instanceof NodeTask.Free;
  }
}

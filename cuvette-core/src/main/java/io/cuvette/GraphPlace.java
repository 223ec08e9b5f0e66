package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.GraphConditionType;
import io.cuvette.internal.node.NodeTarget;
import io.cuvette.internal.node.NodeWork;
import java.util.List;
import java.util.Objects;

/**
 * Where new nodes of a graph go: behind certain others. Each method adds a node, and the place can
 * be used again for the next. Thread-safe.
 */
public final class GraphPlace extends GraphWork {
  private final List<GraphNode> behind;

  GraphPlace(GraphDefinition definition, List<GraphNode> behind) {
    super(definition);
    this.behind = behind;
  }

  /** {@return the nodes that new nodes wait for} */
  public List<GraphNode> dependencies() {
    return behind;
  }

  /**
   * Adds a node that does nothing but wait for others (cuGraphAddEmptyNode).
   *
   * @return the node
   * @throws CudaException if the driver reports an error
   */
  public GraphNode empty() {
    return node(NodeWork::empty);
  }

  /**
   * Adds the nodes that another graph has now, as one node (cuGraphAddChildGraphNode). Later
   * changes of that graph change nothing here.
   *
   * @param graph a graph of the same device, whose memory is its own or the same {@link
   *     GraphMemory}
   * @return the node
   * @throws CudaException if the driver reports an error, such as for allocation nodes in it
   */
  public GraphNode embed(CudaGraph graph) {
    Objects.requireNonNull(graph, "graph");
    return node(target -> NodeWork.embed(target, graph.core()));
  }

  /**
   * Adds an allocation of device memory, which each launch makes at the same address
   * (cuGraphAddMemAllocNode): {@link GraphNode#buffer}. What no node of the graph frees is
   * allocated until another graph or a stream frees it, and the next launch is refused before that,
   * unless {@link GraphOptions#freeOnLaunch}.
   *
   * @param bytes the number of bytes, &gt; 0
   * @return the node
   * @throws CudaException if the driver reports an error
   */
  public GraphNode allocate(long bytes) {
    return node(target -> NodeWork.allocate(target, bytes));
  }

  /**
   * Adds a free of what an allocation node allocates (cuGraphAddMemFreeNode).
   *
   * @param allocation a node of {@link #allocate}, of this graph or another
   * @return the node
   * @throws CudaException if the driver reports an error
   */
  public GraphNode free(GraphNode allocation) {
    long address = Objects.requireNonNull(allocation, "allocation").address();
    return node(target -> NodeWork.free(target, address));
  }

  /**
   * Adds a node whose body runs if a condition is not 0 when the node is reached (cuGraphAddNode).
   * Needs CUDA 12.3.
   *
   * @param condition a condition of the same graph or body, for this node alone
   * @return the node, with one body
   * @throws IllegalArgumentException if the condition is another graph's, or another node reads it
   * @throws CudaException if the driver reports an error
   */
  public GraphNode ifThen(GraphCondition condition) {
    return conditional(condition, GraphConditionType.IF, 1);
  }

  /**
   * Adds a node whose first body runs if a condition is not 0 when the node is reached, and whose
   * second body runs else (cuGraphAddNode). Needs CUDA 12.8.
   *
   * @param condition a condition of the same graph or body, for this node alone
   * @return the node, with two bodies
   * @throws IllegalArgumentException if the condition is another graph's, or another node reads it
   * @throws CudaException if the driver reports an error
   */
  public GraphNode ifElse(GraphCondition condition) {
    return conditional(condition, GraphConditionType.IF, 2);
  }

  /**
   * Adds a node whose body runs again and again as long as a condition is not 0, which is looked at
   * before each time (cuGraphAddNode). Needs CUDA 12.3.
   *
   * @param condition a condition of the same graph or body, for this node alone
   * @return the node, with one body
   * @throws IllegalArgumentException if the condition is another graph's, or another node reads it
   * @throws CudaException if the driver reports an error
   */
  public GraphNode whileLoop(GraphCondition condition) {
    return conditional(condition, GraphConditionType.WHILE, 1);
  }

  /**
   * Adds a node with several bodies, of which the one runs whose number, from 0, a condition is
   * when the node is reached; none for another number (cuGraphAddNode). Needs CUDA 12.8.
   *
   * @param condition a condition of the same graph or body, for this node alone
   * @param bodies the number of bodies, &gt;= 1
   * @return the node, with that many bodies
   * @throws IllegalArgumentException if the condition is another graph's, or another node reads it
   * @throws CudaException if the driver reports an error
   */
  public GraphNode switchCase(GraphCondition condition, int bodies) {
    if (bodies < 1) {
      throw new IllegalArgumentException("bodies: %d (expected: >= 1)".formatted(bodies));
    }
    return conditional(condition, GraphConditionType.SWITCH, bodies);
  }

  private GraphNode conditional(GraphCondition condition, GraphConditionType type, int bodies) {
    Objects.requireNonNull(condition, "condition");
    definition.checkConditions(type == GraphConditionType.SWITCH || bodies > 1);
    return condition.readBy(
        definition,
        () -> node(target -> NodeWork.condition(target, condition.handle(), type, bodies)));
  }

  @Override
  NodeTarget target() {
    return definition.core().after(behind.stream().map(GraphNode::id).toList());
  }

  @Override
  public String toString() {
    return "place behind " + behind;
  }
}

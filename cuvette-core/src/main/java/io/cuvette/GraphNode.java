package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.internal.node.GraphNodes;
import io.cuvette.internal.node.NodeId;
import io.cuvette.internal.order.OpenStream;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A node of a graph (CUgraphNode). Nodes are equal if they are the same one of the same graph.
 * Thread-safe.
 *
 * <p>Each method but {@link #handle} throws {@link IllegalStateException} if the graph is closed or
 * the node was removed, and {@link CudaException} if the driver reports an error.
 */
public final class GraphNode {
  private final GraphDefinition definition;
  private final NodeId id;

  GraphNode(GraphDefinition definition, NodeId id) {
    this.definition = definition;
    this.id = id;
  }

  NodeId id() {
    return id;
  }

  private GraphNodes core() {
    return definition.core();
  }

  /** {@return the graph, with its nodes} */
  public GraphDefinition definition() {
    return definition;
  }

  /** {@return the handle of the driver (CUgraphNode)} */
  public long handle() {
    return id.handle();
  }

  /** {@return the type of what the node does (cuGraphNodeGetType)} */
  public GraphNodeType type() {
    return core().of(id, driver -> driver.graphNodeGetType(id.handle()));
  }

  /**
   * {@return the address of what an allocation node allocates in each launch
   * (cuGraphMemAllocNodeGetParams)}
   */
  public long address() {
    return allocation().address();
  }

  /**
   * {@return the memory of an allocation node as a buffer, which frees nothing when it is closed}
   * Nodes behind this one use it, and after a launch so does what comes behind that, until it is
   * freed. It keeps the graph reachable, not open.
   *
   * @param stream where operations on the buffer go that name no stream
   * @throws IllegalArgumentException if the stream is of another device than the node
   */
  public DeviceBuffer buffer(CudaStream stream) {
    OpenStream in = Objects.requireNonNull(stream, "stream").core();
    GraphNodeParams.Allocation allocation = allocation();
    if (in.on().id() != allocation.device()) {
      throw new IllegalArgumentException(
          "stream: %s of device %d (expected: of device %d, whose memory it is)"
              .formatted(in, in.on().id(), allocation.device()));
    }
    return ForeignMemory.ofGraph(in, allocation, definition);
  }

  /**
   * {@return the bodies of a conditional node, to be built like a graph: what runs if the condition
   * holds, and then what runs else; what a loop repeats; or those of the numbers from 0} They end
   * with the node. Kernels, copies and fills of device memory, empty nodes, graphs of these and
   * conditional nodes can be in one.
   */
  public List<GraphDefinition> bodies() {
    return core().bodies(id).stream().map(definition::body).toList();
  }

  /**
   * {@return what the node does, with addresses and handles as the driver has them
   * (cuGraphKernelNodeGetParams and the others of the type)} What an executable does instead, after
   * {@link #updateIn}, cannot be read. The arguments of a kernel are empty before CUDA 12.4; a
   * conditional node is {@link GraphNodeParams.Other}.
   */
  public GraphNodeParams parameters() {
    return core().of(id, driver -> driver.graphNodeGetParams(id.handle()));
  }

  private GraphNodeParams.Allocation allocation() {
    GraphNodeParams params = parameters();
    if (params instanceof GraphNodeParams.Allocation allocation) {
      return allocation;
    }
    throw new IllegalStateException(
        "%s is of type %s (expected: an allocation)".formatted(this, params.type()));
  }

  /** {@return the nodes that this one waits for directly, as they are now} */
  public Set<GraphNode> dependencies() {
    Set<GraphNode> found = new LinkedHashSet<>();
    for (GraphDependency edge : definition.edges()) {
      if (edge.to().equals(this)) {
        found.add(edge.from());
      }
    }
    checkPresent();
    return found;
  }

  /** {@return the nodes that wait for this one directly, as they are now} */
  public Set<GraphNode> dependents() {
    Set<GraphNode> found = new LinkedHashSet<>();
    for (GraphDependency edge : definition.edges()) {
      if (edge.from().equals(this)) {
        found.add(edge.to());
      }
    }
    checkPresent();
    return found;
  }

  private void checkPresent() {
    GraphNodeType _ = type();
  }

  /**
   * {@return the priority of a kernel node, as of a stream: lower numbers first
   * (cuGraphKernelNodeGetAttribute)} It counts in executables with {@link
   * GraphOptions#nodePriorities}.
   */
  public int priority() {
    return core()
        .of(
            id,
            driver -> {
              checkKernel(driver.graphNodeGetType(id.handle()));
              return driver.graphKernelNodeGetPriority(id.handle());
            });
  }

  /**
   * Sets the priority of a kernel node (cuGraphKernelNodeSetAttribute).
   *
   * @param priority as of a stream; the driver clamps it to the range of the device
   */
  public void setPriority(int priority) {
    boolean _ =
        core()
            .of(
                id,
                driver -> {
                  checkKernel(driver.graphNodeGetType(id.handle()));
                  driver.graphKernelNodeSetPriority(id.handle(), priority);
                  return true;
                });
  }

  private void checkKernel(GraphNodeType type) {
    if (type != GraphNodeType.KERNEL) {
      throw new IllegalStateException(
          "%s is of type %s (expected: a kernel node)".formatted(this, type));
    }
  }

  /** {@return what changes the node in its graph, for what is instantiated from now on} */
  public GraphNodeUpdate update() {
    return new GraphNodeUpdate(definition, () -> core().change(id));
  }

  /**
   * {@return what changes the node in an executable, for launches from now on
   * (cuGraphExecKernelNodeSetParams and the others of the type)}
   *
   * @param executable what was instantiated from the node's graph
   */
  public GraphNodeUpdate updateIn(CudaGraphExec executable) {
    Objects.requireNonNull(executable, "executable");
    return new GraphNodeUpdate(definition, () -> executable.nodes().change(core(), id));
  }

  /**
   * Says whether a kernel, copy or fill takes part in launches of an executable from now on; if
   * not, it is as an empty node (cuGraphNodeSetEnabled).
   *
   * @param executable what was instantiated from the node's graph
   * @param isEnabled whether it takes part
   * @throws IllegalArgumentException if the executable is of another graph
   */
  public void setEnabledIn(CudaGraphExec executable, boolean isEnabled) {
    Objects.requireNonNull(executable, "executable").nodes().setEnabled(core(), id, isEnabled);
  }

  /**
   * {@return whether the node takes part in launches of an executable (cuGraphNodeGetEnabled)}
   *
   * @param executable what was instantiated from the node's graph
   * @throws IllegalArgumentException if the executable is of another graph
   */
  public boolean isEnabledIn(CudaGraphExec executable) {
    return Objects.requireNonNull(executable, "executable").nodes().isEnabled(core(), id);
  }

  /**
   * Removes the node and its edges (cuGraphDestroyNode). What has been instantiated keeps it, and
   * the graph keeps the memory that it used.
   */
  public void remove() {
    core().remove(id);
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof GraphNode node && node.id.equals(id) && node.core().equals(core());
  }

  @Override
  public int hashCode() {
    return id.hashCode();
  }

  @Override
  public String toString() {
    return "%s of %s".formatted(id, core());
  }
}

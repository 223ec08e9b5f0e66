package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.node.NodeId;
import io.cuvette.internal.node.NodeTarget;
import io.cuvette.internal.node.NodeWork;
import io.cuvette.internal.transfer.FillValue;
import java.lang.ref.Reference;
import java.util.Objects;
import java.util.function.Function;

/**
 * What a node of a graph can do: that of a new one ({@link GraphPlace}), or what one does from now
 * on ({@link GraphNodeUpdate}). The graph keeps what its nodes use: buffers, events and modules may
 * be closed, and their memory is not handed out again before the graph, its copies, what is
 * instantiated from them, and all launches of that are gone. Thread-safe.
 *
 * <p>Each method throws {@link IllegalStateException} if the graph, or something it is given, is
 * closed, {@link IllegalArgumentException} for what belongs to another Cuda or another device, and
 * {@link CudaException} if the driver reports an error. Nothing has changed then.
 */
public abstract sealed class GraphWork permits GraphPlace, GraphNodeUpdate {
  final GraphDefinition definition;

  GraphWork(GraphDefinition definition) {
    this.definition = definition;
  }

  /** What creates or changes the node. */
  abstract NodeTarget target();

  /** The node of the graph. */
  final GraphNode node(Function<NodeTarget, NodeId> work) {
    return new GraphNode(definition, work.apply(target()));
  }

  /**
   * Launches a kernel (cuGraphAddKernelNode, cuGraphKernelNodeSetParams).
   *
   * @param kernel a {@link CudaKernel}
   * @param config the grid and the rest of the configuration
   * @param arguments one for each parameter, as {@link CudaStream#launch} takes them; their values
   *     are copied
   * @return the node
   * @throws IllegalArgumentException if the arguments or the configuration do not fit
   */
  public final GraphNode launch(LaunchableKernel kernel, LaunchConfig config, Object... arguments) {
    Objects.requireNonNull(kernel, "kernel");
    Objects.requireNonNull(config, "config");
    Objects.requireNonNull(arguments, "arguments");
    try {
      return node(target ->
          NodeWork.launch(target, kernel.core(), config, arguments, BufferBase::argument));
    } finally {
      Reference.reachabilityFence(kernel);
    }
  }

  /**
   * Copies all bytes of a buffer to the start of another (cuGraphAddMemcpyNode,
   * cuGraphMemcpyNodeSetParams).
   *
   * @param target the target, at least as large
   * @param source the source, apart from the target, not of 0 bytes
   * @return the node
   */
  public final GraphNode copy(Buffer target, Buffer source) {
    Memory to = memory(target, "target");
    Memory from = memory(source, "source");
    return node(node -> NodeWork.copy(node, to, from));
  }

  /**
   * Fills a buffer with a byte (cuGraphAddMemsetNode, cuGraphMemsetNodeSetParams).
   *
   * @param target the buffer, not of 0 bytes
   * @param value the byte
   * @return the node
   */
  public final GraphNode fill(Buffer target, byte value) {
    return fill(target, FillValue.ofByte(value));
  }

  /**
   * Fills a buffer with 2-byte values (cuGraphAddMemsetNode, cuGraphMemsetNodeSetParams).
   *
   * @param target the buffer, whose address and size are multiples of 2
   * @param value the value
   * @return the node
   */
  public final GraphNode fillShorts(Buffer target, short value) {
    return fill(target, FillValue.ofShort(value));
  }

  /**
   * Fills a buffer with 4-byte values (cuGraphAddMemsetNode, cuGraphMemsetNodeSetParams).
   *
   * @param target the buffer, whose address and size are multiples of 4
   * @param value the value
   * @return the node
   */
  public final GraphNode fillInts(Buffer target, int value) {
    return fill(target, FillValue.ofInt(value));
  }

  private GraphNode fill(Buffer target, FillValue value) {
    Memory to = memory(target, "target");
    return node(node -> NodeWork.fill(node, to, value));
  }

  /**
   * Runs a function of the host in each launch, on a thread of the driver (cuGraphAddHostNode,
   * cuGraphHostNodeSetParams). It must be short, must not wait for the device and cannot call it:
   * the driver refuses that. What it throws goes to the uncaught exception handler of the thread.
   *
   * @param function the function
   * @return the node
   */
  public final GraphNode callback(Runnable function) {
    Objects.requireNonNull(function, "function");
    return node(node -> NodeWork.host(node, function));
  }

  /**
   * Records an event in each launch, for streams and threads outside the graph
   * (cuGraphAddEventRecordNode, cuGraphEventRecordNodeSetEvent).
   *
   * @param event an event of the graph's device
   * @return the node
   */
  public final GraphNode record(CudaEvent event) {
    Objects.requireNonNull(event, "event");
    return node(node -> NodeWork.record(node, event.core()));
  }

  /**
   * Waits in each launch for the last record of an event before it (cuGraphAddEventWaitNode,
   * cuGraphEventWaitNodeSetEvent).
   *
   * @param event an event of the graph's device
   * @return the node
   */
  public final GraphNode waitFor(CudaEvent event) {
    Objects.requireNonNull(event, "event");
    return node(node -> NodeWork.await(node, event.core()));
  }

  static Memory memory(Buffer buffer, String what) {
    return Objects.requireNonNull(BufferBase.memoryOf(Objects.requireNonNull(buffer, what)));
  }
}

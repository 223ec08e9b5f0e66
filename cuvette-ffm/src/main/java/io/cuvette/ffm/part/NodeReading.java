package io.cuvette.ffm.part;

import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.DriverFunction;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.library.Libcuda;
import io.cuvette.ffm.link.NodeLayouts;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;

/** Reads what nodes of graphs do. Thread-safe. */
final class NodeReading extends Part {
  static final MethodHandle GET_COPY =
      Libcuda.function("cuGraphMemcpyNodeGetParams", 10000, POINTER, SEGMENT);
  static final MethodHandle GET_FILL =
      Libcuda.function("cuGraphMemsetNodeGetParams", 10000, POINTER, SEGMENT);
  static final MethodHandle GET_HOST =
      Libcuda.function("cuGraphHostNodeGetParams", 10000, POINTER, SEGMENT);
  static final DriverFunction GET_CHILD =
      optional("cuGraphChildGraphNodeGetGraph(node=%#x)", 10000, POINTER, OUT);
  static final DriverFunction GET_EVENT_RECORD =
      optional("cuGraphEventRecordNodeGetEvent(node=%#x)", 11010, POINTER, OUT);
  static final DriverFunction GET_EVENT_WAIT =
      optional("cuGraphEventWaitNodeGetEvent(node=%#x)", 11010, POINTER, OUT);
  static final MethodHandle GET_ALLOCATION =
      Libcuda.function("cuGraphMemAllocNodeGetParams", 11040, POINTER, SEGMENT);
  static final DriverFunction GET_FREE =
      optional("cuGraphMemFreeNodeGetParams(node=%#x)", 11040, POINTER, OUT);

  private final KernelNodes kernels;

  NodeReading(Entry entry, KernelNodes kernels) {
    super(entry);
    this.kernels = kernels;
  }

  /** What a node of a type does. */
  GraphNodeParams get(long node, GraphNodeType type) {
    return switch (type) {
      case KERNEL -> kernels.get(node);
      case MEMCPY ->
          NodeStructures.copy(
              read("cuGraphMemcpyNodeGetParams(node=%#x)", GET_COPY, node, NodeLayouts.COPY));
      case MEMSET ->
          NodeStructures.fill(
              read("cuGraphMemsetNodeGetParams(node=%#x)", GET_FILL, node, NodeLayouts.FILL));
      case HOST -> function(host(node));
      case GRAPH -> new GraphNodeParams.Child(GET_CHILD.call(node, entry.enterAny()));
      case EMPTY -> new GraphNodeParams.Empty();
      case WAIT_EVENT -> new GraphNodeParams.EventWait(GET_EVENT_WAIT.call(node, entry.enterAny()));
      case EVENT_RECORD ->
          new GraphNodeParams.EventRecord(GET_EVENT_RECORD.call(node, entry.enterAny()));
      case MEM_ALLOC ->
          NodeStructures.allocation(
              read(
                  "cuGraphMemAllocNodeGetParams(node=%#x)",
                  GET_ALLOCATION, node, NodeLayouts.ALLOCATION),
              contexts());
      case MEM_FREE -> new GraphNodeParams.Free(GET_FREE.call(node, entry.enterAny()));
      case EXT_SEMAS_SIGNAL, EXT_SEMAS_WAIT, BATCH_MEM_OP, CONDITIONAL ->
          new GraphNodeParams.Other(type);
    };
  }

  /** The CUDA_HOST_NODE_PARAMS of a node. */
  MemorySegment host(long node) {
    return read("cuGraphHostNodeGetParams(node=%#x)", GET_HOST, node, NodeLayouts.HOST);
  }

  private static GraphNodeParams function(MemorySegment host) {
    Runnable body = GraphFunctions.body(NodeStructures.function(host));
    return body == null
        ? new GraphNodeParams.Other(GraphNodeType.HOST)
        : new GraphNodeParams.Host(body);
  }

  private MemorySegment read(
      String format, MethodHandle function, long node, StructLayout structure) {
    MemorySegment made = Arena.ofAuto().allocate(structure);
    Call.of(format, node).run(_ -> (int) function.invokeExact(node, made), entry.enterAny());
    return made;
  }
}

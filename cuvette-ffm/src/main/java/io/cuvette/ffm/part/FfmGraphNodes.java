package io.cuvette.ffm.part;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeParams.Allocation;
import io.cuvette.driver.GraphNodeParams.Child;
import io.cuvette.driver.GraphNodeParams.Conditional;
import io.cuvette.driver.GraphNodeParams.Copy;
import io.cuvette.driver.GraphNodeParams.Empty;
import io.cuvette.driver.GraphNodeParams.EventRecord;
import io.cuvette.driver.GraphNodeParams.EventWait;
import io.cuvette.driver.GraphNodeParams.Fill;
import io.cuvette.driver.GraphNodeParams.Free;
import io.cuvette.driver.GraphNodeParams.Host;
import io.cuvette.driver.GraphNodeParams.Kernel;
import io.cuvette.driver.GraphNodeParams.Other;
import io.cuvette.driver.LaunchShape;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.DriverFunction;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.library.Libcuda;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.ref.Reference;
import java.util.List;

/** Adds nodes to graphs, and changes what they do. Thread-safe. */
final class FfmGraphNodes extends Part {
  static final MethodHandle ADD_KERNEL =
      Libcuda.function("cuGraphAddKernelNode", 12000, POINTER, POINTER, SEGMENT, SIZE, SEGMENT);
  static final MethodHandle ADD_COPY =
      Libcuda.function(
          "cuGraphAddMemcpyNode", 10000, POINTER, POINTER, SEGMENT, SIZE, SEGMENT, POINTER);
  static final MethodHandle ADD_FILL =
      Libcuda.function(
          "cuGraphAddMemsetNode", 10000, POINTER, POINTER, SEGMENT, SIZE, SEGMENT, POINTER);
  static final MethodHandle ADD_HOST =
      Libcuda.function("cuGraphAddHostNode", 10000, POINTER, POINTER, SEGMENT, SIZE, SEGMENT);
  static final MethodHandle ADD_CHILD =
      Libcuda.function("cuGraphAddChildGraphNode", 10000, POINTER, POINTER, SEGMENT, SIZE, POINTER);
  static final MethodHandle ADD_EMPTY =
      Libcuda.function("cuGraphAddEmptyNode", 10000, POINTER, POINTER, SEGMENT, SIZE);
  static final MethodHandle ADD_EVENT_RECORD =
      Libcuda.function(
          "cuGraphAddEventRecordNode", 11010, POINTER, POINTER, SEGMENT, SIZE, POINTER);
  static final MethodHandle ADD_EVENT_WAIT =
      Libcuda.function("cuGraphAddEventWaitNode", 11010, POINTER, POINTER, SEGMENT, SIZE, POINTER);
  static final MethodHandle ADD_ALLOCATION =
      Libcuda.function("cuGraphAddMemAllocNode", 11040, POINTER, POINTER, SEGMENT, SIZE, SEGMENT);
  static final MethodHandle ADD_FREE =
      Libcuda.function("cuGraphAddMemFreeNode", 11040, POINTER, POINTER, SEGMENT, SIZE, POINTER);
  static final MethodHandle ADD_NODE =
      Libcuda.function("cuGraphAddNode", 12030, POINTER, POINTER, SEGMENT, POINTER, SIZE, SEGMENT);
  static final DriverFunction DESTROY_NODE =
      optional("cuGraphDestroyNode(node=%#x)", 10000, POINTER);

  static final MethodHandle SET_KERNEL =
      Libcuda.function("cuGraphKernelNodeSetParams", 12000, POINTER, SEGMENT);
  static final MethodHandle SET_COPY =
      Libcuda.function("cuGraphMemcpyNodeSetParams", 10000, POINTER, SEGMENT);
  static final MethodHandle SET_FILL =
      Libcuda.function("cuGraphMemsetNodeSetParams", 10000, POINTER, SEGMENT);
  static final MethodHandle SET_HOST =
      Libcuda.function("cuGraphHostNodeSetParams", 10000, POINTER, SEGMENT);
  static final DriverFunction SET_EVENT_RECORD =
      optional(
          "cuGraphEventRecordNodeSetEvent(node=%#x, event=%#x, device=%d)",
          11010, POINTER, POINTER);
  static final DriverFunction SET_EVENT_WAIT =
      optional(
          "cuGraphEventWaitNodeSetEvent(node=%#x, event=%#x, device=%d)", 11010, POINTER, POINTER);

  static final MethodHandle EXEC_SET_KERNEL =
      Libcuda.function("cuGraphExecKernelNodeSetParams", 12000, POINTER, POINTER, SEGMENT);
  static final MethodHandle EXEC_SET_COPY =
      Libcuda.function("cuGraphExecMemcpyNodeSetParams", 10020, POINTER, POINTER, SEGMENT, POINTER);
  static final MethodHandle EXEC_SET_FILL =
      Libcuda.function("cuGraphExecMemsetNodeSetParams", 10020, POINTER, POINTER, SEGMENT, POINTER);
  static final MethodHandle EXEC_SET_HOST =
      Libcuda.function("cuGraphExecHostNodeSetParams", 10020, POINTER, POINTER, SEGMENT);
  static final DriverFunction EXEC_SET_CHILD =
      optional(
          "cuGraphExecChildGraphNodeSetParams(executable=%#x, node=%#x, graph=%#x, device=%d)",
          11010, POINTER, POINTER, POINTER);
  static final DriverFunction EXEC_SET_EVENT_RECORD =
      optional(
          "cuGraphExecEventRecordNodeSetEvent(executable=%#x, node=%#x, event=%#x, device=%d)",
          11010, POINTER, POINTER, POINTER);
  static final DriverFunction EXEC_SET_EVENT_WAIT =
      optional(
          "cuGraphExecEventWaitNodeSetEvent(executable=%#x, node=%#x, event=%#x, device=%d)",
          11010, POINTER, POINTER, POINTER);

  private final KernelNodes kernels;
  private final NodeReading reading;
  private final HostNodes hosts;

  FfmGraphNodes(Entry entry, KernelNodes kernels, NodeReading reading) {
    super(entry);
    this.kernels = kernels;
    this.reading = reading;
    this.hosts = new HostNodes(entry);
  }

  /** Where a node goes: before any call of the driver. */
  private record Place(int device, long graph, MemorySegment after, long count) {
    Call call(String function, GraphNodeParams params) {
      return Call.of(
          function + "(graph=%#x, dependencies=%d, %s, device=%d)", graph, count, params, device);
    }
  }

  /** See {@link io.cuvette.driver.GraphCalls#graphAddNode}. */
  AddedNode add(int device, long graph, long[] dependencies, GraphNodeParams params) {
    Place to = new Place(device, graph, NodeStructures.handles(dependencies), dependencies.length);
    return switch (params) {
      case Kernel kernel -> AddedNode.plain(addKernel(to, kernel));
      case Copy copy -> AddedNode.plain(addCopy(to, copy));
      case Fill fill -> AddedNode.plain(addFill(to, fill));
      case Host host -> AddedNode.plain(addHost(to, host));
      case Child child -> AddedNode.plain(addChild(to, child));
      case Empty empty -> AddedNode.plain(addEmpty(to, empty));
      case EventRecord event -> AddedNode.plain(addEventRecord(to, event));
      case EventWait event -> AddedNode.plain(addEventWait(to, event));
      case Allocation allocation -> addAllocation(to, allocation);
      case Free free -> AddedNode.plain(addFree(to, free));
      case Conditional conditional -> addConditional(to, conditional);
      case Other other -> throw refused("cuGraphAddNode", graph, other);
    };
  }

  private static CudaException refused(String function, long of, GraphNodeParams params) {
    return new CudaException(
        CudaStatus.INVALID_VALUE,
        "%s(%#x, %s)".formatted(function, of, params),
        "parameters of type %s that this library does not make".formatted(params.type()));
  }

  /** A node that cannot have its attributes is removed again. */
  private long addKernel(Place to, Kernel params) {
    Call call = to.call("cuGraphAddKernelNode", params);
    MemorySegment made = kernels.structure(to.device, params);
    long node;
    try {
      node =
          call.run(
              frame -> (int) ADD_KERNEL.invokeExact(frame.out, to.graph, to.after, to.count, made),
              enter(to.device));
    } finally {
      Reference.reachabilityFence(params.parameters());
    }
    LaunchShape shape = params.shape();
    if (shape.hasClusters() || shape.cooperative()) {
      try {
        kernels.setAttributes(to.device, node, shape);
      } catch (RuntimeException | Error e) {
        undo(() -> DESTROY_NODE.free(node, 0, entry.enterToFree()), e);
        throw e;
      }
    }
    return node;
  }

  private long addCopy(Place to, Copy params) {
    MemorySegment made = NodeStructures.copy(params);
    long context = entry.context(to.device);
    return to.call("cuGraphAddMemcpyNode", params)
        .run(
            frame ->
                (int) ADD_COPY.invokeExact(frame.out, to.graph, to.after, to.count, made, context),
            enter(to.device));
  }

  private long addFill(Place to, Fill params) {
    MemorySegment made = NodeStructures.fill(params);
    long context = entry.context(to.device);
    return to.call("cuGraphAddMemsetNode", params)
        .run(
            frame ->
                (int) ADD_FILL.invokeExact(frame.out, to.graph, to.after, to.count, made, context),
            enter(to.device));
  }

  private long addHost(Place to, Host params) {
    long[] node = new long[1];
    hosts.add(
        to.device,
        to.graph,
        params.function(),
        number -> {
          MemorySegment made = NodeStructures.host(number);
          node[0] =
              to.call("cuGraphAddHostNode", params)
                  .run(
                      frame ->
                          (int) ADD_HOST.invokeExact(frame.out, to.graph, to.after, to.count, made),
                      enter(to.device));
        });
    return node[0];
  }

  private long addChild(Place to, Child params) {
    long graph = params.graph();
    return to.call("cuGraphAddChildGraphNode", params)
        .run(
            frame -> (int) ADD_CHILD.invokeExact(frame.out, to.graph, to.after, to.count, graph),
            enter(to.device));
  }

  private long addEmpty(Place to, Empty params) {
    return to.call("cuGraphAddEmptyNode", params)
        .run(
            frame -> (int) ADD_EMPTY.invokeExact(frame.out, to.graph, to.after, to.count),
            enter(to.device));
  }

  private long addEventRecord(Place to, EventRecord params) {
    long event = params.event();
    return to.call("cuGraphAddEventRecordNode", params)
        .run(
            frame ->
                (int) ADD_EVENT_RECORD.invokeExact(frame.out, to.graph, to.after, to.count, event),
            enter(to.device));
  }

  private long addEventWait(Place to, EventWait params) {
    long event = params.event();
    return to.call("cuGraphAddEventWaitNode", params)
        .run(
            frame ->
                (int) ADD_EVENT_WAIT.invokeExact(frame.out, to.graph, to.after, to.count, event),
            enter(to.device));
  }

  private AddedNode addAllocation(Place to, Allocation params) {
    MemorySegment made = NodeStructures.allocation(params, contexts());
    long node =
        to.call("cuGraphAddMemAllocNode", params)
            .run(
                frame ->
                    (int) ADD_ALLOCATION.invokeExact(frame.out, to.graph, to.after, to.count, made),
                enter(to.device));
    return new AddedNode(node, NodeStructures.address(made), List.of());
  }

  private long addFree(Place to, Free params) {
    long address = params.address();
    return to.call("cuGraphAddMemFreeNode", params)
        .run(
            frame -> (int) ADD_FREE.invokeExact(frame.out, to.graph, to.after, to.count, address),
            enter(to.device));
  }

  private AddedNode addConditional(Place to, Conditional params) {
    MemorySegment made = NodeStructures.conditional(params, entry.context(to.device));
    long node =
        to.call("cuGraphAddNode", params)
            .run(
                frame ->
                    (int) ADD_NODE.invokeExact(frame.out, to.graph, to.after, 0L, to.count, made),
                enter(to.device));
    return new AddedNode(node, 0, NodeStructures.bodies(made, params.size()));
  }

  /** See {@link io.cuvette.driver.GraphCalls#graphNodeSetParams}. */
  void set(int device, long node, GraphNodeParams params) {
    switch (params) {
      case Kernel kernel -> setKernel(device, node, kernel);
      case Copy copy -> {
        MemorySegment made = NodeStructures.copy(copy);
        Call.of("cuGraphMemcpyNodeSetParams(node=%#x, %s, device=%d)", node, copy, device)
            .run(_ -> (int) SET_COPY.invokeExact(node, made), enter(device));
      }
      case Fill fill -> {
        MemorySegment made = NodeStructures.fill(fill);
        Call.of("cuGraphMemsetNodeSetParams(node=%#x, %s, device=%d)", node, fill, device)
            .run(_ -> (int) SET_FILL.invokeExact(node, made), enter(device));
      }
      case Host host -> setHost(device, node, host);
      case EventRecord(long event) -> SET_EVENT_RECORD.call(node, event, device, enter(device));
      case EventWait(long event) -> SET_EVENT_WAIT.call(node, event, device, enter(device));
      default -> throw refused("cuGraphNodeSetParams", node, params);
    }
  }

  /** The attributes come first: they can be set back if the parameters are refused. */
  private void setKernel(int device, long node, Kernel params) {
    Call call =
        Call.of("cuGraphKernelNodeSetParams(node=%#x, %s, device=%d)", node, params, device);
    MemorySegment made = kernels.structure(device, params);
    LaunchShape shape = params.shape();
    LaunchShape before = kernels.shape(node);
    boolean changes = KernelNodes.differ(shape, before);
    try {
      if (changes) {
        kernels.setAttributes(device, node, shape);
      }
      call.run(_ -> (int) SET_KERNEL.invokeExact(node, made), enter(device));
    } catch (RuntimeException | Error e) {
      if (changes) {
        undo(() -> kernels.setAttributes(device, node, before), e);
      }
      throw e;
    } finally {
      Reference.reachabilityFence(params.parameters());
    }
  }

  private void setHost(int device, long node, Host host) {
    hosts.change(
        device,
        node,
        0,
        reading.host(node),
        host.function(),
        number -> {
          MemorySegment made = NodeStructures.host(number);
          Call.of("cuGraphHostNodeSetParams(node=%#x, %s, device=%d)", node, host, device)
              .run(_ -> (int) SET_HOST.invokeExact(node, made), enter(device));
        });
  }

  /** See {@link io.cuvette.driver.GraphCalls#graphExecNodeSetParams}. */
  void execSet(int device, long executable, long node, GraphNodeParams params) {
    switch (params) {
      case Kernel kernel -> execSetKernel(device, executable, node, kernel);
      case Copy copy -> {
        MemorySegment made = NodeStructures.copy(copy);
        long context = entry.context(device);
        execCall("cuGraphExecMemcpyNodeSetParams", device, executable, node, copy)
            .run(
                _ -> (int) EXEC_SET_COPY.invokeExact(executable, node, made, context),
                enter(device));
      }
      case Fill fill -> {
        MemorySegment made = NodeStructures.fill(fill);
        long context = entry.context(device);
        execCall("cuGraphExecMemsetNodeSetParams", device, executable, node, fill)
            .run(
                _ -> (int) EXEC_SET_FILL.invokeExact(executable, node, made, context),
                enter(device));
      }
      case Host host -> execSetHost(device, executable, node, host);
      case Child(long graph) -> EXEC_SET_CHILD.call(executable, node, graph, device, enter(device));
      case EventRecord(long event) ->
          EXEC_SET_EVENT_RECORD.call(executable, node, event, device, enter(device));
      case EventWait(long event) ->
          EXEC_SET_EVENT_WAIT.call(executable, node, event, device, enter(device));
      default -> throw refused("cuGraphExecNodeSetParams", node, params);
    }
  }

  private static Call execCall(
      String function, int device, long executable, long node, GraphNodeParams params) {
    return Call.of(
        function + "(executable=%#x, node=%#x, %s, device=%d)", executable, node, params, device);
  }

  /** Attributes of a kernel in an executable cannot change, which the driver does not say. */
  private void execSetKernel(int device, long executable, long node, Kernel params) {
    Call call = execCall("cuGraphExecKernelNodeSetParams", device, executable, node, params);
    MemorySegment made = kernels.structure(device, params);
    LaunchShape before = kernels.shape(node);
    if (KernelNodes.differ(params.shape(), before)) {
      throw new CudaException(
          CudaStatus.NOT_SUPPORTED,
          "cuGraphExecKernelNodeSetParams(node=%#x)".formatted(node),
          "%s (expected: clusters and cooperation as in %s)".formatted(params.shape(), before));
    }
    try {
      call.run(_ -> (int) EXEC_SET_KERNEL.invokeExact(executable, node, made), enter(device));
    } finally {
      Reference.reachabilityFence(params.parameters());
    }
  }

  private void execSetHost(int device, long executable, long node, Host host) {
    hosts.change(
        device,
        node,
        executable,
        reading.host(node),
        host.function(),
        number -> {
          MemorySegment made = NodeStructures.host(number);
          execCall("cuGraphExecHostNodeSetParams", device, executable, node, host)
              .run(_ -> (int) EXEC_SET_HOST.invokeExact(executable, node, made), enter(device));
        });
  }
}

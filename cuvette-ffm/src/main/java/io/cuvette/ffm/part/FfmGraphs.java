package io.cuvette.ffm.part;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphEdge;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.driver.GraphUpdateResult;
import io.cuvette.driver.InstantiatedGraph;
import io.cuvette.driver.UserObject;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.DriverFunction;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.library.Libcuda;
import io.cuvette.ffm.link.Layouts;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToLongFunction;

/** Calls about graphs. Thread-safe. */
public final class FfmGraphs extends Part implements GraphCalls {
  public static final DriverFunction USER_OBJECT_CREATE =
      optional("cuUserObjectCreate()", 11030, OUT, POINTER, POINTER, INT, INT);
  public static final DriverFunction USER_OBJECT_RELEASE =
      optional("cuUserObjectRelease(object=%#x)", 11030, POINTER, INT);
  public static final DriverFunction GRAPH_RETAIN_USER_OBJECT =
      optional("cuGraphRetainUserObject(graph=%#x, object=%#x)", 11030, POINTER, POINTER, INT, INT);
  public static final MethodHandle INSTANTIATE_WITH_PARAMS =
      Libcuda.function("cuGraphInstantiateWithParams", 12000, POINTER, POINTER, POINTER);
  public static final DriverFunction EXEC_GET_FLAGS =
      optional("cuGraphExecGetFlags(executable=%#x)", 12000, POINTER, OUT);
  public static final MethodHandle EXEC_UPDATE =
      Libcuda.function("cuGraphExecUpdate", 12000, POINTER, POINTER, POINTER);
  public static final DriverFunction GRAPH_UPLOAD =
      optional("cuGraphUpload(executable=%#x, stream=%#x, device=%d)", 11010, POINTER, POINTER);
  public static final DriverFunction GRAPH_CREATE = optional("cuGraphCreate()", 10000, OUT, INT);
  public static final DriverFunction GRAPH_CLONE =
      optional("cuGraphClone(graph=%#x)", 10000, OUT, POINTER);
  public static final MethodHandle DEBUG_DOT_PRINT =
      Libcuda.function("cuGraphDebugDotPrint", 11030, POINTER, SEGMENT, INT);
  public static final DriverFunction NODE_GET_TYPE =
      optional("cuGraphNodeGetType(node=%#x)", 10000, POINTER, OUT);
  public static final DriverFunction NODE_FIND_IN_CLONE =
      optional("cuGraphNodeFindInClone(node=%#x, clone=%#x)", 10000, OUT, POINTER, POINTER);
  public static final DriverFunction NODE_SET_ENABLED =
      optional(
          "cuGraphNodeSetEnabled(executable=%#x, node=%#x, enabled=%d)",
          11060, POINTER, POINTER, INT);
  public static final DriverFunction NODE_GET_ENABLED =
      optional("cuGraphNodeGetEnabled(executable=%#x, node=%#x)", 11060, POINTER, POINTER, OUT);
  public static final MethodHandle GET_NODES =
      Libcuda.function("cuGraphGetNodes", 10000, POINTER, SEGMENT, SEGMENT);
  public static final MethodHandle GET_ROOT_NODES =
      Libcuda.function("cuGraphGetRootNodes", 10000, POINTER, SEGMENT, SEGMENT);
  public static final MethodHandle GET_EDGES =
      Libcuda.function("cuGraphGetEdges", 12030, POINTER, SEGMENT, SEGMENT, SEGMENT, SEGMENT);
  public static final MethodHandle GET_DEPENDENCIES =
      Libcuda.function("cuGraphNodeGetDependencies", 12030, POINTER, SEGMENT, SEGMENT, SEGMENT);
  public static final MethodHandle GET_DEPENDENTS =
      Libcuda.function("cuGraphNodeGetDependentNodes", 12030, POINTER, SEGMENT, SEGMENT, SEGMENT);
  public static final MethodHandle ADD_DEPENDENCIES =
      Libcuda.function("cuGraphAddDependencies", 12030, POINTER, SEGMENT, SEGMENT, POINTER, SIZE);
  public static final MethodHandle REMOVE_DEPENDENCIES =
      Libcuda.function(
          "cuGraphRemoveDependencies", 12030, POINTER, SEGMENT, SEGMENT, POINTER, SIZE);
  public static final DriverFunction CONDITIONAL_HANDLE_CREATE =
      optional(
          "cuGraphConditionalHandleCreate(graph=%#x, context=%#x, default=%d, flags=%d, device=%d)",
          12030, OUT, POINTER, POINTER, INT, INT);
  public static final DriverFunction GET_MEM_ATTRIBUTE =
      optional("cuDeviceGetGraphMemAttribute(device=%d, attribute=%d)", 11040, INT, INT, OUT);
  public static final MethodHandle SET_MEM_ATTRIBUTE =
      Libcuda.function("cuDeviceSetGraphMemAttribute", 11040, INT, INT, POINTER);
  public static final DriverFunction MEM_TRIM =
      optional("cuDeviceGraphMemTrim(device=%d)", 11040, INT);
  public static final DriverFunction GRAPH_LAUNCH =
      optional("cuGraphLaunch(executable=%#x, stream=%#x, device=%d)", 10000, POINTER, POINTER);
  public static final DriverFunction GRAPH_EXEC_DESTROY =
      optional("cuGraphExecDestroy(executable=%#x)", 10000, POINTER);
  public static final DriverFunction GRAPH_DESTROY =
      optional("cuGraphDestroy(graph=%#x)", 10000, POINTER);

  private static final int INSTANTIATION_WORDS = words(Layouts.GRAPH_INSTANTIATION);
  private static final int UPDATE_WORDS = words(Layouts.GRAPH_UPDATE);

  /** CUgraphEdgeData. */
  public static final long EDGE_BYTES = 8;

  /** CUgraphInstantiateResult and CUgraphExecUpdateResult of what is an error of the call. */
  private static final int ANY_ERROR = 1;

  /** CU_GRAPH_COND_ASSIGN_DEFAULT. */
  public static final int ASSIGN_DEFAULT = 1;

  /** CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, which is required. */
  public static final int NO_DESTRUCTOR_SYNC = 1;

  /** CU_GRAPH_USER_OBJECT_MOVE. */
  public static final int MOVE_USER_OBJECT = 1;

  private final KernelNodes kernels;
  private final NodeReading reading;
  private final FfmGraphNodes nodes;

  /** The part of the driver whose calls start here. */
  public FfmGraphs(Entry entry) {
    super(entry);
    this.kernels = new KernelNodes(entry);
    this.reading = new NodeReading(entry, kernels);
    this.nodes = new FfmGraphNodes(entry, kernels, reading);
  }

  @Override
  public AddedNode graphAddNode(
      int device, long graph, long[] dependencies, GraphNodeParams params) {
    return nodes.add(device, graph, dependencies, params);
  }

  @Override
  public GraphNodeParams graphNodeGetParams(long node) {
    return reading.get(node, graphNodeGetType(node));
  }

  @Override
  public void graphNodeSetParams(int device, long node, GraphNodeParams params) {
    nodes.set(device, node, params);
  }

  @Override
  public void graphExecNodeSetParams(
      int device, long executable, long node, GraphNodeParams params) {
    nodes.execSet(device, executable, node, params);
    if (params instanceof GraphNodeParams.Child(long graph) && !GraphFunctions.isEmpty()) {
      keepFunctions(graph, executable);
    }
  }

  /** An executable runs the functions of a graph that nobody says it retains. */
  private void keepFunctions(long graph, long executable) {
    for (long node : graphGetNodes(graph)) {
      switch (graphNodeGetType(node)) {
        case HOST -> GraphFunctions.keep(NodeStructures.function(reading.host(node)), executable);
        case GRAPH -> {
          GraphNodeParams.Child child =
              (GraphNodeParams.Child) reading.get(node, GraphNodeType.GRAPH);
          keepFunctions(child.graph(), executable);
        }
        default -> {}
      }
    }
  }

  @Override
  public int graphKernelNodeGetPriority(long node) {
    return kernels.priority(node);
  }

  @Override
  public void graphKernelNodeSetPriority(long node, int priority) {
    kernels.setPriority(node, priority);
  }

  @Override
  public UserObject userObjectCreate() {
    Signal signal = Signal.take();
    try {
      long object =
          USER_OBJECT_CREATE.call(signal.address(), Signal.RAISE, 1, NO_DESTRUCTOR_SYNC, enter());
      return new UserObject(object, signal::isRaised);
    } catch (RuntimeException e) {
      signal.unused();
      throw e;
    }
  }

  @Override
  public void userObjectRelease(long object) {
    USER_OBJECT_RELEASE.free(object, 1, entry.enterToFree()); // one reference
  }

  @Override
  public void graphRetainUserObject(long graph, long object) {
    GRAPH_RETAIN_USER_OBJECT.call(graph, object, 1, MOVE_USER_OBJECT, enter());
  }

  private static int words(MemoryLayout structure) {
    return Math.toIntExact(structure.byteSize() / Long.BYTES);
  }

  /** A refusal has a result of its own, beside the status of the call. */
  @Override
  public InstantiatedGraph graphInstantiateWithParams(
      int device, long graph, long flags, long uploadStream) {
    CallFrame frame = enter(device);
    long params = frame.structure(INSTANTIATION_WORDS);
    frame.member(0, flags);
    frame.member(1, uploadStream);
    int status;
    try {
      status = (int) INSTANTIATE_WITH_PARAMS.invokeExact(frame.out, graph, params);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long node = frame.member(2);
    int result = (int) frame.member(3);
    long executable = frame.leave();
    if (status != SUCCESS && result <= ANY_ERROR) {
      throw Call.of(
              "cuGraphInstantiateWithParams(graph=%#x, flags=%d, device=%d)", graph, flags, device)
          .failed(status);
    }
    return new InstantiatedGraph(status == SUCCESS ? executable : 0, result, node);
  }

  @Override
  public long graphExecGetFlags(long executable) {
    return EXEC_GET_FLAGS.call(executable, entry.enterAny());
  }

  @Override
  public GraphUpdateResult graphExecUpdate(int device, long executable, long graph) {
    CallFrame frame = enter(device);
    long info = frame.structure(UPDATE_WORDS);
    int status;
    try {
      status = (int) EXEC_UPDATE.invokeExact(executable, graph, info);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    int result = (int) frame.member(0);
    long node = frame.member(1);
    long from = frame.member(2);
    frame.leave();
    if (status != SUCCESS && result <= ANY_ERROR) {
      throw Call.of(
              "cuGraphExecUpdate(executable=%#x, graph=%#x, device=%d)", executable, graph, device)
          .failed(status);
    }
    return new GraphUpdateResult(result, node, from);
  }

  @Override
  public void graphUpload(int device, long executable, long stream) {
    GRAPH_UPLOAD.call(executable, stream, device, enterAsIs(device));
  }

  @Override
  public long graphCreate() {
    return GRAPH_CREATE.call(0, entry.enterAny());
  }

  @Override
  public long graphClone(long graph) {
    return GRAPH_CLONE.call(graph, entry.enterAny());
  }

  /** The driver writes a file. */
  @Override
  public String graphDebugDotPrint(long graph, int flags) {
    try {
      Path file = Files.createTempFile("cuvette", ".dot");
      try {
        MemorySegment path = Arena.ofAuto().allocateFrom(file.toString());
        Call.of("cuGraphDebugDotPrint(graph=%#x, flags=%d)", graph, flags)
            .run(_ -> (int) DEBUG_DOT_PRINT.invokeExact(graph, path, flags), entry.enterAny());
        return Files.readString(file);
      } finally {
        Files.deleteIfExists(file);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public GraphNodeType graphNodeGetType(long node) {
    return GraphNodeType.of((int) NODE_GET_TYPE.call(node, entry.enterAny()));
  }

  @Override
  public long graphNodeFindInClone(long node, long clone) {
    return NODE_FIND_IN_CLONE.call(node, clone, entry.enterAny());
  }

  @Override
  public void graphDestroyNode(long node) {
    FfmGraphNodes.DESTROY_NODE.call(node, entry.enterAny());
    GraphFunctions.sweep();
  }

  @Override
  public void graphNodeSetEnabled(long executable, long node, boolean isEnabled) {
    NODE_SET_ENABLED.call(executable, node, isEnabled ? 1 : 0, entry.enterAny());
  }

  @Override
  public boolean graphNodeGetEnabled(long executable, long node) {
    return NODE_GET_ENABLED.call(executable, node, entry.enterAny()) != 0;
  }

  @Override
  public long[] graphGetNodes(long graph) {
    return nodes(Call.of("cuGraphGetNodes(graph=%#x)", graph), GET_NODES, graph);
  }

  @Override
  public long[] graphGetRootNodes(long graph) {
    return nodes(Call.of("cuGraphGetRootNodes(graph=%#x)", graph), GET_ROOT_NODES, graph);
  }

  @Override
  public long[] graphNodeGetDependencies(long node) {
    return neighbours(
        Call.of("cuGraphNodeGetDependencies(node=%#x)", node), GET_DEPENDENCIES, node);
  }

  @Override
  public long[] graphNodeGetDependentNodes(long node) {
    return neighbours(
        Call.of("cuGraphNodeGetDependentNodes(node=%#x)", node), GET_DEPENDENTS, node);
  }

  private long[] nodes(Call call, MethodHandle function, long of) {
    MemorySegment none = MemorySegment.NULL;
    MemorySegment count = Arena.ofAuto().allocate(SIZE);
    call.run(_ -> (int) function.invokeExact(of, none, count), entry.enterAny());
    if (count.get(SIZE, 0) == 0) {
      return new long[0]; // room for none is refused
    }
    MemorySegment nodes = room(count);
    call.run(_ -> (int) function.invokeExact(of, nodes, count), entry.enterAny());
    return given(nodes, count);
  }

  /** With room for the edges: without it, the driver refuses programmatic ones. */
  private long[] neighbours(Call call, MethodHandle function, long of) {
    MemorySegment none = MemorySegment.NULL;
    MemorySegment count = Arena.ofAuto().allocate(SIZE);
    call.run(_ -> (int) function.invokeExact(of, none, none, count), entry.enterAny());
    if (count.get(SIZE, 0) == 0) {
      return new long[0]; // room for none is refused
    }
    MemorySegment nodes = room(count);
    MemorySegment edges = room(count);
    call.run(_ -> (int) function.invokeExact(of, nodes, edges, count), entry.enterAny());
    return given(nodes, count);
  }

  /** For as many handles, or edges, as the driver has counted. */
  private static MemorySegment room(MemorySegment count) {
    return Arena.ofAuto().allocate(POINTER, count.get(SIZE, 0));
  }

  private static long[] given(MemorySegment nodes, MemorySegment count) {
    return nodes.asSlice(0, count.get(SIZE, 0) * Long.BYTES).toArray(POINTER);
  }

  @Override
  public List<GraphEdge> graphGetEdges(long graph) {
    Call call = Call.of("cuGraphGetEdges(graph=%#x)", graph);
    MemorySegment none = MemorySegment.NULL;
    MemorySegment count = Arena.ofAuto().allocate(SIZE);
    call.run(_ -> (int) GET_EDGES.invokeExact(graph, none, none, none, count), entry.enterAny());
    if (count.get(SIZE, 0) == 0) {
      return List.of();
    }
    MemorySegment from = room(count);
    MemorySegment to = room(count);
    MemorySegment data = room(count);
    call.run(_ -> (int) GET_EDGES.invokeExact(graph, from, to, data, count), entry.enterAny());
    List<GraphEdge> edges = new ArrayList<>();
    for (int i = 0; i < count.get(SIZE, 0); i++) {
      edges.add(new GraphEdge(from.getAtIndex(POINTER, i), to.getAtIndex(POINTER, i)));
    }
    return edges;
  }

  @Override
  public void graphAddDependencies(long graph, List<GraphEdge> edges) {
    MemorySegment from = ends(edges, GraphEdge::from);
    MemorySegment to = ends(edges, GraphEdge::to);
    long count = edges.size();
    Call.of("cuGraphAddDependencies(graph=%#x, %s)", graph, edges)
        .run(_ -> (int) ADD_DEPENDENCIES.invokeExact(graph, from, to, 0L, count), entry.enterAny());
  }

  @Override
  public void graphRemoveDependencies(long graph, List<GraphEdge> edges) {
    MemorySegment from = ends(edges, GraphEdge::from);
    MemorySegment to = ends(edges, GraphEdge::to);
    long count = edges.size();
    Call.of("cuGraphRemoveDependencies(graph=%#x, %s)", graph, edges)
        .run(
            _ -> (int) REMOVE_DEPENDENCIES.invokeExact(graph, from, to, 0L, count),
            entry.enterAny());
  }

  private static MemorySegment ends(List<GraphEdge> edges, ToLongFunction<GraphEdge> end) {
    return Arena.ofAuto().allocateFrom(POINTER, edges.stream().mapToLong(end).toArray());
  }

  @Override
  public long graphConditionalHandleCreate(
      int device, long graph, int defaultValue, boolean assignsDefault) {
    return CONDITIONAL_HANDLE_CREATE.call(
        graph,
        entry.context(device),
        defaultValue,
        assignsDefault ? ASSIGN_DEFAULT : 0,
        device,
        0,
        enter(device));
  }

  @Override
  public long deviceGetGraphMemAttribute(int device, GraphMemAttribute attribute) {
    return GET_MEM_ATTRIBUTE.call(contexts().handle(device), attribute.code(), entry.enterAny());
  }

  @Override
  public void deviceResetGraphMemAttribute(int device, GraphMemAttribute attribute) {
    int handle = contexts().handle(device);
    int code = attribute.code();
    Call.of("cuDeviceSetGraphMemAttribute(device=%d, %s)", device, attribute)
        .run(
            frame -> (int) SET_MEM_ATTRIBUTE.invokeExact(handle, code, frame.value(0)),
            entry.enterAny());
  }

  @Override
  public void deviceGraphMemTrim(int device) {
    MEM_TRIM.call(contexts().handle(device), entry.enterAny());
  }

  @Override
  public void graphLaunch(int device, long executable, long stream) {
    GRAPH_LAUNCH.call(executable, stream, device, enterAsIs(device));
  }

  @Override
  public void graphExecDestroy(long executable) {
    GRAPH_EXEC_DESTROY.free(executable, 0, entry.enterToFree());
    GraphFunctions.destroyed(executable);
  }

  @Override
  public void graphDestroy(long graph) {
    GRAPH_DESTROY.free(graph, 0, entry.enterToFree());
    GraphFunctions.sweep();
  }
}

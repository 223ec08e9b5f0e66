package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphConditionType;
import io.cuvette.driver.GraphEdge;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.LongFunction;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Which nodes graphs take, how they are changed and how they are drawn. */
class GraphNodesTest extends SimTestBase {
  private static final CudaStatus INVALID = CudaStatus.INVALID_VALUE;
  private static final int INVALID_STRUCTURE = 2;
  private static final int VERBOSE = 1;
  private static final int UPLOAD = 2;
  private static final int PRIORITIES = 1 << 9;
  private static final int CONDITIONALS = 1 << 15;

  private final long graph = driver.graphs().graphCreate();
  private final long memory = driver.memory().memAlloc(0, 64);

  private AddedNode added(long to, GraphNodeParams params) {
    return driver.graphs().graphAddNode(0, to, new long[0], params);
  }

  private GraphNodeParams fill() {
    return new GraphNodeParams.Fill(memory, 1, 1, 8);
  }

  private AddedNode conditional(GraphConditionType type, int bodies) {
    long condition = driver.graphs().graphConditionalHandleCreate(0, graph, 0, true);
    return added(graph, new GraphNodeParams.Conditional(condition, type, bodies));
  }

  /** A node that many ways lead to is looked at once. */
  @Test
  @Timeout(60)
  void graphWithMoreWaysThanAnyoneCanGo_isUnderstood() {
    AddedNode made = added(graph, new GraphNodeParams.Allocation(0, 64, List.of(), 0));
    long[] layer = {made.node()};
    for (int i = 0; i < 50; i++) {
      long[] before = layer;
      layer =
          LongStream.range(0, 2)
              .map(_ ->
                  driver
                      .graphs()
                      .graphAddNode(0, graph, before, new GraphNodeParams.Empty())
                      .node())
              .toArray();
    }
    GraphNodeParams free = new GraphNodeParams.Free(made.address());
    long last = driver.graphs().graphAddNode(0, graph, layer, free).node();
    assertThat(driver.graphs().graphGetNodes(graph)).hasSize(102).contains(last);
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    driver.graphs().graphLaunch(0, executable, 0);
    driver.streams().streamSynchronize(0, 0);
    assertThat(driver.liveBytes(0)).isEqualTo(512);
  }

  @Test
  void graph_isNotInsideItself() {
    long body = conditional(GraphConditionType.IF, 1).bodies().getFirst();
    String rule = "graph: 0x%x cannot be inside itself".formatted(graph);
    assertFails(INVALID, rule, () -> added(graph, new GraphNodeParams.Child(graph)));
    assertFails(INVALID, rule, () -> added(body, new GraphNodeParams.Child(graph)));
    assertThat(driver.graphs().graphGetNodes(body)).isEmpty();
  }

  private AddedNode addCircle(long to) {
    AddedNode first = added(to, fill());
    AddedNode second = added(to, fill());
    List<GraphEdge> edges =
        List.of(
            new GraphEdge(first.node(), second.node()), new GraphEdge(second.node(), first.node()));
    driver.graphs().graphAddDependencies(to, edges);
    return first;
  }

  private AddedNode addChildWithCircle(long to) {
    long child = driver.graphs().graphCreate();
    AddedNode _ = addCircle(child);
    return added(to, new GraphNodeParams.Child(child));
  }

  private long body(long of, GraphConditionType type, int bodies) {
    long condition = driver.graphs().graphConditionalHandleCreate(0, of, 0, true);
    return added(of, new GraphNodeParams.Conditional(condition, type, bodies)).bodies().getLast();
  }

  /** Also if the graph with them is inside, at any depth. */
  @Test
  void nodesThatWaitForEachOther_areNotInstantiated() {
    List<LongFunction<AddedNode>> places =
        List.of(
            this::addCircle,
            this::addChildWithCircle,
            to -> addCircle(body(to, GraphConditionType.IF, 2)),
            to -> addCircle(body(to, GraphConditionType.WHILE, 1)),
            to -> addChildWithCircle(body(to, GraphConditionType.IF, 1)));
    for (LongFunction<AddedNode> place : places) {
      long to = driver.graphs().graphCreate();
      AddedNode _ = added(to, fill());
      AddedNode _ = place.apply(to);
      assertThat(driver.graphs().graphInstantiateWithParams(0, to, 0, 0).result())
          .isEqualTo(INVALID_STRUCTURE);
    }
  }

  @Test
  void nodesWithoutParameters_areNotChanged() {
    long node = added(graph, new GraphNodeParams.Empty()).node();
    assertFails(
        INVALID,
        "EMPTY",
        () -> driver.graphs().graphNodeSetParams(0, node, new GraphNodeParams.Empty()));
    assertFails(
        INVALID,
        "parameters of type MEMCPY",
        () -> added(graph, new GraphNodeParams.Other(GraphNodeType.MEMCPY)));
    assertThat(driver.graphs().graphGetNodes(graph)).containsExactly(node);
  }

  @Test
  void memoryOfAGraph_isForOtherDevicesThatReachIt() {
    String rule = "expected: another one that can reach device 0";
    GraphNodeParams itself = new GraphNodeParams.Allocation(0, 64, List.of(0), 0);
    assertFails(INVALID, "peers: device 0 (" + rule, () -> added(graph, itself));
    try (SimulatedDriver apart =
        SimulatedDriver.open(SimulatedOptions.parse("devices=2").withPeers("none"))) {
      long own = apart.graphs().graphCreate();
      GraphNodeParams other = new GraphNodeParams.Allocation(0, 64, List.of(1), 0);
      assertFails(
          INVALID,
          "peers: device 1 (" + rule,
          () -> apart.graphs().graphAddNode(0, own, new long[0], other));
    }
    assertFails(
        CudaStatus.OUT_OF_MEMORY,
        "requested=%d".formatted(GIB),
        () -> added(graph, new GraphNodeParams.Allocation(0, GIB, List.of(), 0)));
    assertThat(driver.graphs().graphGetNodes(graph)).isEmpty();
  }

  @Test
  void uploadThatThereIsNoMemoryFor_leavesNoExecutable() {
    long _ = added(graph, new GraphNodeParams.Allocation(0, 20 * MIB, List.of(), 0)).node();
    long taken = driver.memory().memAlloc(0, 50 * MIB);
    for (int i = 0; i < 2; i++) { // of such a graph there is one executable at a time
      assertFails(
          CudaStatus.OUT_OF_MEMORY,
          "20971520",
          () -> driver.graphs().graphInstantiateWithParams(0, graph, UPLOAD, 0));
    }
    driver.memory().memFree(0, taken);
    long made = driver.graphs().graphInstantiateWithParams(0, graph, UPLOAD, 0).executable();
    assertThat(made).isNotZero();
  }

  @Test
  void memoryOfAGraph_isThatOfItsPeers() {
    AddedNode own = added(graph, new GraphNodeParams.Allocation(0, 64, List.of(), 0));
    AddedNode shared = added(graph, new GraphNodeParams.Allocation(0, 64, List.of(1), 0));
    assertFails(
        INVALID,
        "is not known before a launch",
        () -> driver.memory().pointerGetAttribute(1, 16, own.address()));
    long stream = stream(0);
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    driver.graphs().graphLaunch(0, executable, stream);
    assertThat(driver.memory().pointerGetAttribute(0, 16, own.address())).isEqualTo(3);
    assertThat(driver.memory().pointerGetAttribute(1, 16, own.address())).isZero();
    assertThat(driver.memory().pointerGetAttribute(1, 16, shared.address())).isEqualTo(3);
    driver.streams().streamSynchronize(0, stream);
    assertFails(
        INVALID,
        "device 1 has access 0 to its graph (expected: 3)",
        () -> driver.transfers().memsetD8Async(1, own.address(), (byte) 1, 8, 0));
    driver.transfers().memsetD8Async(1, shared.address(), (byte) 1, 8, 0);
  }

  @Test
  void drawing_hasWhatItsFlagsAskFor() {
    AddedNode node = conditional(GraphConditionType.IF, 1);
    long inside = node.bodies().getFirst();
    long fill = added(inside, fill()).node();
    String plain = driver.graphs().graphDebugDotPrint(graph, 0);
    assertThat(plain)
        .contains("\"node_%x\" [shape=box, label=\"CONDITIONAL\"]".formatted(node.node()))
        .contains(
            "subgraph \"cluster_%x\"".formatted(inside), "label=\"graph_%x\"".formatted(inside))
        .contains("label=\"graph_%x\"".formatted(graph))
        .contains("\"node_%x\" [shape=box, label=\"MEMSET\"]".formatted(fill));
    assertThat(driver.graphs().graphDebugDotPrint(graph, CONDITIONALS))
        .contains("label=\"CONDITIONAL\\nConditional[condition=", "size=1]\"]", "\"MEMSET\"");
    assertThat(driver.graphs().graphDebugDotPrint(graph, VERBOSE))
        .contains("CONDITIONAL\\n0x%x\\nConditional[".formatted(node.node()))
        .contains("MEMSET\\n0x%x\\nFill[".formatted(fill));
    assertThat(driver.graphs().graphDebugDotPrint(graph, 1 << 20)).isEqualTo(plain);
  }

  @Test
  void copiesAndFills_areEnabledAndDisabled() {
    write(memory, new byte[64]);
    GraphNodeParams copy = new GraphNodeParams.Copy(memory + 8, memory, 8);
    long first = added(graph, fill()).node();
    long second = driver.graphs().graphAddNode(0, graph, new long[] {first}, copy).node();
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    for (boolean fills : new boolean[] {false, true}) {
      for (boolean copies : new boolean[] {false, true}) {
        write(memory, new byte[64]);
        driver.graphs().graphNodeSetEnabled(executable, first, fills);
        driver.graphs().graphNodeSetEnabled(executable, second, copies);
        assertThat(driver.graphs().graphNodeGetEnabled(executable, first)).isEqualTo(fills);
        assertThat(driver.graphs().graphNodeGetEnabled(executable, second)).isEqualTo(copies);
        driver.graphs().graphLaunch(0, executable, 0);
        driver.streams().streamSynchronize(0, 0);
        assertThat(read(memory, 16)).startsWith(fills ? 1 : 0).endsWith(fills && copies ? 1 : 0);
      }
    }
  }

  @Test
  void drawing_hasPrioritiesOfKernels() {
    SimulatedKernel kernel = SimulatedKernel.of("drawn", _ -> {});
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(kernel)) {
      long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(kernel)));
      LaunchShape shape = new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);
      GraphNodeParams params =
          new GraphNodeParams.Kernel(
              driver.kernels().libraryGetKernel(library, "drawn"),
              shape,
              new LaunchParameters(MemorySegment.NULL, List.of()));
      long node = added(graph, params).node();
      driver.graphs().graphKernelNodeSetPriority(node, -3);
      assertThat(driver.graphs().graphDebugDotPrint(graph, PRIORITIES))
          .contains("label=\"KERNEL\\npriority -3\"");
      assertThat(driver.graphs().graphDebugDotPrint(graph, 0)).doesNotContain("priority");
    }
  }

  @Test
  void priority_isOfKernelsAlone() {
    long fill = added(graph, fill()).node();
    String message = "of type MEMSET (expected: a kernel)";
    assertFails(INVALID, message, () -> driver.graphs().graphKernelNodeGetPriority(fill));
    assertFails(INVALID, message, () -> driver.graphs().graphKernelNodeSetPriority(fill, 0));
  }

  @Test
  void addressOfAGraphsMemory_isThereAsLongAsTheGraph_itsExecutables_andWhatALaunchLeft() {
    long graph = driver.graphs().graphCreate();
    AddedNode node = added(graph, new GraphNodeParams.Allocation(0, 64, List.of(), 0));
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    driver.graphs().graphLaunch(0, executable, 0);
    driver.devices().ctxSynchronize(0);
    driver.graphs().graphDestroy(graph);
    driver.graphs().graphExecDestroy(executable);
    driver.transfers().memsetD8Async(0, node.address(), (byte) 1, 64, 0);
    driver.ordered().memFreeAsync(0, node.address(), 0);
    driver.devices().ctxSynchronize(0);
    assertFails(
        INVALID,
        "this was freed",
        () -> driver.transfers().memsetD8Async(0, node.address(), (byte) 1, 64, 0));
  }

  @Test
  void addressOfAGraphThatWasNeverLaunched_endsWithItsLastExecutable() {
    long graph = driver.graphs().graphCreate();
    AddedNode node = added(graph, new GraphNodeParams.Allocation(0, 64, List.of(), 0));
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    driver.graphs().graphDestroy(graph);
    driver.graphs().graphExecDestroy(executable);
    assertFails(
        INVALID,
        "this was freed",
        () -> driver.transfers().memsetD8Async(0, node.address(), (byte) 1, 64, 0));
  }

  /** Graphs beside the one that allocates may each free it, as one of them is launched. */
  @Test
  void memoryOfAGraph_isFreedByItself_orByOthers() {
    long other = driver.graphs().graphCreate();
    AddedNode own = added(graph, new GraphNodeParams.Allocation(0, 64, List.of(), 0));
    GraphNodeParams freeOwn = new GraphNodeParams.Free(own.address());
    driver.graphs().graphAddNode(0, graph, new long[] {own.node()}, freeOwn);
    String already = "is freed by a node of graph 0x%x already";
    assertFails(INVALID, already.formatted(graph), () -> added(graph, freeOwn));
    assertFails(INVALID, already.formatted(graph), () -> added(other, freeOwn));

    AddedNode lent = added(graph, new GraphNodeParams.Allocation(0, 64, List.of(), 0));
    GraphNodeParams freeLent = new GraphNodeParams.Free(lent.address());
    AddedNode _ = added(other, freeLent);
    assertFails(INVALID, already.formatted(other), () -> added(other, freeLent));
    assertFails(INVALID, already.formatted(other), () -> added(graph, freeLent));
    long third = driver.graphs().graphCreate();
    assertThat(added(third, freeLent).node()).isNotZero();
  }
}

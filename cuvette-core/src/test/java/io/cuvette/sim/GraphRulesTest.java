package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphConditionType;
import io.cuvette.driver.GraphEdge;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphUpdateResult;
import io.cuvette.driver.InstantiatedGraph;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What is refused when graphs are instantiated and updated, and why. */
class GraphRulesTest extends SimTestBase {
  private final List<Integer> noted = new ArrayList<>();
  private final SimulatedKernel counting =
      SimulatedKernel.of(
          "countsTurns",
          t -> {
            noted.add(t.intValue(1));
            t.setConditional(t.longValue(0), noted.size() % 3);
          },
          SimulatedParameter.LONG,
          SimulatedParameter.INT);
  private final SimulatedKernels.Registered registered = SimulatedKernels.register(counting);
  private final long stream = stream(0);
  private final long memory = driver.memory().memAlloc(0, 64);
  private final long onOther = driver.memory().memAlloc(1, 64);
  private final MemorySegment host = driver.memory().memHostAlloc(0, 64, 0);

  @AfterEach
  void unregister() {
    registered.close();
  }

  private GraphNodeParams.Kernel kernel(long condition, int number, boolean cooperative) {
    long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(counting)));
    MemorySegment values = Arena.ofAuto().allocate(16, 8);
    values.set(ValueLayout.JAVA_LONG, 0, condition);
    values.set(ValueLayout.JAVA_INT, 8, number);
    return new GraphNodeParams.Kernel(
        driver.kernels().libraryGetKernel(library, counting.name()),
        new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, cooperative, false),
        new LaunchParameters(
            values, List.of(new KernelParameter(0, 8), new KernelParameter(8, 4))));
  }

  private long add(int device, long graph, GraphNodeParams params, long... dependencies) {
    return driver.graphs().graphAddNode(device, graph, dependencies, params).node();
  }

  private InstantiatedGraph instantiate(long graph, long flags) {
    return driver.graphs().graphInstantiateWithParams(0, graph, flags, stream);
  }

  /** A graph of single nodes in a row. */
  private long graph(GraphNodeParams... all) {
    long graph = driver.graphs().graphCreate();
    long[] last = {};
    for (GraphNodeParams each : all) {
      last = new long[] {add(0, graph, each, last)};
    }
    return graph;
  }

  private GraphUpdateResult update(GraphNodeParams from, GraphNodeParams to) {
    long executable = instantiate(graph(from), 8).executable();
    return driver.graphs().graphExecUpdate(0, executable, graph(to));
  }

  private GraphNodeParams.Copy copy(long target, long source) {
    return new GraphNodeParams.Copy(target, source, 8);
  }

  @Test
  void updates_keepWhereMemoryIs_andHowKernelsAreLaunched() {
    driver.devices().ctxEnablePeerAccess(0, 1);
    GraphNodeParams.Copy before = copy(memory, host.address());
    assertThat(update(before, copy(memory + 8, host.address() + 8)).result()).isZero();
    assertThat(update(before, copy(memory, onOther)).result()).isEqualTo(5);
    assertThat(update(before, copy(host.address(), memory)).result()).isEqualTo(5);
    assertThat(
            update(
                    new GraphNodeParams.Fill(memory, 1, 4, 2),
                    new GraphNodeParams.Fill(onOther, 1, 4, 2))
                .result())
        .isEqualTo(5);
    GraphUpdateResult cooperative = update(kernel(0, 1, false), kernel(0, 1, true));
    assertThat(cooperative.result()).isEqualTo(8);
    assertThat(cooperative.errorNode()).isNotZero();
    assertThat(update(kernel(0, 1, false), kernel(0, 2, false)).result()).isZero();
    assertThat(update(new GraphNodeParams.Empty(), before).result()).isEqualTo(3);
  }

  private AddedNode conditional(long graph, GraphConditionType type, int bodies, int assigned) {
    long condition = driver.graphs().graphConditionalHandleCreate(0, graph, assigned, true);
    return driver
        .graphs()
        .graphAddNode(
            0, graph, new long[0], new GraphNodeParams.Conditional(condition, type, bodies));
  }

  /** A graph with a conditional node, in the last body of which there is a node. */
  private long conditional(GraphConditionType type, int bodies, GraphNodeParams inside) {
    long graph = driver.graphs().graphCreate();
    long _ = add(0, conditional(graph, type, bodies, bodies - 1).bodies().getLast(), inside);
    return graph;
  }

  private GraphUpdateResult update(long executable, long graph) {
    return driver.graphs().graphExecUpdate(0, executable, graph);
  }

  private GraphNodeParams.Fill fill(int value) {
    return new GraphNodeParams.Fill(memory, value, 1, 8);
  }

  @Test
  void updates_keepConditionalNodes_andChangeWhatIsInTheirBodies() {
    GraphConditionType type = GraphConditionType.SWITCH;
    long executable = instantiate(conditional(type, 2, fill(1)), 0).executable();
    long oneBody = conditional(type, 1, fill(2));
    long node = driver.graphs().graphGetNodes(oneBody)[0];
    assertThat(update(executable, oneBody)).isEqualTo(new GraphUpdateResult(5, node, 0));
    long otherType = conditional(GraphConditionType.IF, 2, fill(2));
    assertThat(update(executable, otherType).result()).isEqualTo(5);
    assertThat(update(executable, graph(fill(2))).result()).isEqualTo(3);
    long other = driver.graphs().graphCreate();
    long body = conditional(other, type, 2, 1).bodies().getLast();
    long copying = add(0, body, copy(memory, host.address()));
    assertThat(update(executable, other)).isEqualTo(new GraphUpdateResult(3, copying, 0));
    driver.graphs().graphLaunch(0, executable, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(read(memory, 8)).containsOnly(1);
    assertThat(update(executable, conditional(type, 2, fill(3))).result()).isZero();
    driver.graphs().graphLaunch(0, executable, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(read(memory, 8)).containsOnly(3);
  }

  @Test
  void updates_changeGraphsInside_ifTheyFit() {
    long inside = graph(fill(1));
    long executable = instantiate(graph(new GraphNodeParams.Child(inside)), 0).executable();
    long longer = graph(new GraphNodeParams.Child(graph(fill(2), fill(2))));
    assertThat(update(executable, longer)).isEqualTo(new GraphUpdateResult(2, 0, 0));
    long copying = graph(new GraphNodeParams.Child(graph(copy(memory, host.address()))));
    assertThat(update(executable, copying).result()).isEqualTo(3);
    driver.graphs().graphLaunch(0, executable, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(read(memory, 8)).containsOnly(1);
    assertThat(update(executable, graph(new GraphNodeParams.Child(graph(fill(2))))).result())
        .isZero();
    driver.graphs().graphLaunch(0, executable, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(read(memory, 8)).containsOnly(2);
  }

  @Test
  void graphThatDoesNotFitANode_isNotItsGraph() {
    long graph = graph(new GraphNodeParams.Child(graph(fill(1))));
    long node = driver.graphs().graphGetNodes(graph)[0];
    long executable = instantiate(graph, 0).executable();
    long longer = graph(fill(2), fill(2));
    assertFails(
        CudaStatus.INVALID_VALUE,
        "graph: 0x%x does not fit node 0x%x".formatted(longer, node),
        () ->
            driver
                .graphs()
                .graphExecNodeSetParams(0, executable, node, new GraphNodeParams.Child(longer)));
    driver
        .graphs()
        .graphExecNodeSetParams(0, executable, node, new GraphNodeParams.Child(graph(fill(4))));
    driver.graphs().graphLaunch(0, executable, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(read(memory, 8)).containsOnly(4);
  }

  @Test
  void updates_keepPrioritiesWhereTheyCount_andDevicesOfKernels() {
    long first = graph(kernel(0, 1, false));
    long other = graph(kernel(0, 2, false));
    long node = driver.graphs().graphGetNodes(other)[0];
    driver.graphs().graphKernelNodeSetPriority(node, -2);
    assertThat(update(instantiate(first, 8).executable(), other))
        .isEqualTo(new GraphUpdateResult(8, node, 0));
    assertThat(update(instantiate(first, 0).executable(), other).result()).isZero();
    long elsewhere = driver.graphs().graphCreate();
    long _ = add(1, elsewhere, kernel(0, 2, false));
    assertThat(update(instantiate(first, 0).executable(), elsewhere).result()).isEqualTo(7);
  }

  @Test
  void graphForLaunchesFromTheDevice_hasWorkOfOneDevice_alsoInside() {
    long inside = driver.graphs().graphCreate();
    long _ = add(1, inside, new GraphNodeParams.Fill(onOther, 1, 1, 8));
    assertThat(instantiate(inside, 4).result()).isZero();
    long graph = graph(kernel(0, 1, false), fill(1), copy(memory + 8, memory));
    assertThat(instantiate(graph, 4).result()).isZero();
    long child = add(0, graph, new GraphNodeParams.Child(inside));
    InstantiatedGraph refused = instantiate(graph, 4);
    assertThat(refused.result()).isEqualTo(4);
    assertThat(refused.errorNode()).isNotZero().isNotEqualTo(child);
    assertThat(instantiate(graph, 0).result()).isZero();
    driver.graphs().graphDestroyNode(child);
    long second = add(1, graph, new GraphNodeParams.Fill(onOther, 1, 1, 8));
    assertThat(instantiate(graph, 4)).isEqualTo(new InstantiatedGraph(0, 4, second));
    driver.graphs().graphDestroyNode(second);
    long alone = graph(new GraphNodeParams.Child(inside));
    assertThat(instantiate(alone, 4).result()).isZero();
    long none = driver.graphs().graphCreate();
    assertFails(CudaStatus.INVALID_VALUE, "has no work", () -> instantiate(none, 4));
  }

  /** The memory and the conditions of a graph are there once. */
  @Test
  void graphWithConditions_hasOneExecutable() {
    long graph = conditional(GraphConditionType.IF, 1, fill(1));
    long executable = instantiate(graph, 0).executable();
    assertFails(CudaStatus.NOT_SUPPORTED, "has conditions", () -> instantiate(graph, 0));
    driver.graphs().graphExecDestroy(executable);
    assertThat(instantiate(graph, 0).result()).isZero();
  }

  @Test
  void updates_findOtherEdges_andChangeNothing() {
    GraphNodeParams.Fill fill = new GraphNodeParams.Fill(memory, 1, 1, 8);
    long executable = instantiate(graph(fill, copy(memory + 8, memory)), 0).executable();
    long other = driver.graphs().graphCreate();
    long first = add(0, other, new GraphNodeParams.Fill(memory, 2, 1, 8));
    long second = add(0, other, copy(memory + 8, memory));
    GraphUpdateResult missing = driver.graphs().graphExecUpdate(0, executable, other);
    assertThat(missing).isEqualTo(new GraphUpdateResult(2, second, 0));
    driver.graphs().graphAddDependencies(other, List.of(new GraphEdge(second, first)));
    assertThat(driver.graphs().graphExecUpdate(0, executable, other).result()).isEqualTo(2);
    driver.graphs().graphLaunch(0, executable, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(read(memory, 16)).containsOnly(1);
  }

  @Test
  void launches_takeTimeOfTheHost() {
    long executable = instantiate(graph(new GraphNodeParams.Empty()), 0).executable();
    long before = driver.events().eventCreate(0, 0);
    long after = driver.events().eventCreate(0, 0);
    driver.events().eventRecord(0, before, stream);
    for (int i = 0; i < 100; i++) {
      driver.graphs().graphLaunch(0, executable, stream);
    }
    driver.events().eventRecord(0, after, stream);
    driver.events().eventSynchronize(0, after);
    assertThat(driver.events().eventElapsedTime(0, before, after)).isBetween(0.129f, 0.2f);
  }

  @Test
  void nodesOfExecutables_refuseOtherParameters() {
    long graph = driver.graphs().graphCreate();
    long node = add(0, graph, copy(memory, host.address()));
    long foreign = add(0, driver.graphs().graphCreate(), copy(memory, host.address()));
    long executable = instantiate(graph, 0).executable();
    assertFails(
        CudaStatus.INVALID_VALUE,
        "expected: the same type",
        () ->
            driver
                .graphs()
                .graphExecNodeSetParams(
                    0, executable, node, new GraphNodeParams.Fill(memory, 1, 1, 1)));
    assertFails(
        CudaStatus.INVALID_VALUE,
        "expected: of the graph that was instantiated",
        () ->
            driver
                .graphs()
                .graphExecNodeSetParams(0, executable, foreign, copy(memory, host.address())));
    assertFails(
        CudaStatus.INVALID_VALUE,
        "cannot be changed",
        () -> driver.graphs().graphExecNodeSetParams(0, executable, node, copy(memory, onOther)));
  }

  @Test
  void nodeOfAnExecutable_isChangedFromWhatItDoes_notFromWhatTheGraphDoesSince() {
    driver.devices().ctxEnablePeerAccess(0, 1);
    long graph = driver.graphs().graphCreate();
    long node = add(0, graph, copy(memory, host.address()));
    long executable = instantiate(graph, 0).executable();
    driver.graphs().graphNodeSetParams(0, node, copy(memory, onOther));
    driver
        .graphs()
        .graphExecNodeSetParams(0, executable, node, copy(memory + 8, host.address() + 8));
    assertFails(
        CudaStatus.INVALID_VALUE,
        "cannot be changed",
        () -> driver.graphs().graphExecNodeSetParams(0, executable, node, copy(memory, onOther)));
  }

  @Test
  void nodesThatDoNoWorkOfTheDevice_areNeitherEnabledNorDisabled() {
    long graph = driver.graphs().graphCreate();
    long node = add(0, graph, new GraphNodeParams.Host(() -> {}));
    long filling = add(0, graph, new GraphNodeParams.Fill(memory, 1, 1, 1), node);
    long executable = instantiate(graph, 0).executable();
    String rule = "node: 0x%x of type HOST (expected: a kernel, copy or fill)".formatted(node);
    CudaStatus status = CudaStatus.INVALID_VALUE;
    assertFails(status, rule, () -> driver.graphs().graphNodeGetEnabled(executable, node));
    assertFails(status, rule, () -> driver.graphs().graphNodeSetEnabled(executable, node, false));
    assertThat(driver.graphs().graphNodeGetEnabled(executable, filling)).isTrue();
    driver.graphs().graphNodeSetEnabled(executable, filling, false);
    assertThat(driver.graphs().graphNodeGetEnabled(executable, filling)).isFalse();
  }

  @Test
  void nodesOfAGraphWithMemory_orOfACapture_stay() {
    long graph = graph(new GraphNodeParams.Empty(), new GraphNodeParams.Empty());
    long[] nodes = driver.graphs().graphGetNodes(graph);
    driver.graphs().graphDestroyNode(nodes[1]);
    long _ = add(0, graph, new GraphNodeParams.Allocation(0, 64, List.of(), 0));
    CudaStatus status = CudaStatus.INVALID_VALUE;
    assertThat(driver.graphs().graphGetNodes(graph)).hasSize(2);
    assertFails(
        CudaStatus.NOT_SUPPORTED,
        "nodes cannot be destroyed",
        () -> driver.graphs().graphDestroyNode(nodes[0]));
    driver.captures().streamBeginCapture(0, stream, 2);
    driver.transfers().memsetD8Async(0, memory, (byte) 1, 64, stream);
    long captured = driver.captures().streamGetCaptureInfo(0, stream).graph();
    long node = driver.graphs().graphGetNodes(captured)[0];
    assertFails(status, "is being captured", () -> driver.graphs().graphDestroyNode(node));
    assertFails(status, "is being captured", () -> driver.graphs().graphDestroy(captured));
    long other = stream(0);
    assertFails(
        status,
        "is being captured",
        () -> driver.captures().streamBeginCaptureToGraph(0, other, captured, new long[0], 2));
    assertThat(driver.captures().streamEndCapture(0, stream)).isEqualTo(captured);
    driver.graphs().graphDestroyNode(node);
    driver.graphs().graphDestroy(captured);
  }

  @Test
  void instantiation_hasTheResultsOfCuda() {
    long unused = graph(new GraphNodeParams.Empty());
    long _ = driver.graphs().graphConditionalHandleCreate(0, unused, 0, true);
    assertThat(instantiate(unused, 0).result()).isEqualTo(5);
    assertThat(instantiate(unused, 4).result()).as("launched from the device").isEqualTo(5);

    long graph = driver.graphs().graphCreate();
    long condition = driver.graphs().graphConditionalHandleCreate(0, graph, 1, true);
    AddedNode node =
        driver
            .graphs()
            .graphAddNode(
                0,
                graph,
                new long[0],
                new GraphNodeParams.Conditional(condition, GraphConditionType.IF, 2));
    long hostNode = add(0, node.bodies().getFirst(), new GraphNodeParams.Host(() -> {}));
    assertThat(instantiate(graph, 0)).isEqualTo(new InstantiatedGraph(0, 3, hostNode));
    driver.graphs().graphDestroyNode(hostNode);
    long elsewhere = add(1, node.bodies().getLast(), new GraphNodeParams.Fill(onOther, 1, 1, 1));
    assertThat(instantiate(graph, 0)).isEqualTo(new InstantiatedGraph(0, 4, elsewhere));
    driver.graphs().graphDestroyNode(elsewhere);
    assertThat(instantiate(graph, 0).result()).isZero();
    assertFails(CudaStatus.INVALID_VALUE, "flags: 16", () -> instantiate(graph, 16));
  }

  /** A free before its allocation, and one that nothing orders behind it. */
  @Test
  void freeThatIsNotBehindItsAllocation_isRefused() {
    long graph = driver.graphs().graphCreate();
    AddedNode made =
        driver
            .graphs()
            .graphAddNode(
                0, graph, new long[0], new GraphNodeParams.Allocation(0, 64, List.of(), 0));
    long free = add(0, graph, new GraphNodeParams.Free(made.address()));
    assertThat(instantiate(graph, 0)).isEqualTo(new InstantiatedGraph(0, 2, free));
    driver.graphs().graphAddDependencies(graph, List.of(new GraphEdge(made.node(), free)));
    assertThat(instantiate(graph, 0).result()).isZero();
  }

  @Test
  void launchBehindOneWithTheSameMemory_needsNoMore() {
    long graph = driver.graphs().graphCreate();
    AddedNode made =
        driver
            .graphs()
            .graphAddNode(
                0, graph, new long[0], new GraphNodeParams.Allocation(0, 2 * MIB, List.of(), 0));
    long _ = add(0, graph, new GraphNodeParams.Free(made.address()), made.node());
    long executable = instantiate(graph, 0).executable();
    CountDownLatch goOn = hold(0, stream);
    driver.graphs().graphLaunch(0, executable, stream);
    driver.graphs().graphLaunch(0, executable, stream);
    assertThat(driver.graphs().deviceGetGraphMemAttribute(0, GraphMemAttribute.RESERVED_CURRENT))
        .isEqualTo(2 * MIB);
    goOn.countDown();
    driver.streams().streamSynchronize(0, stream);
  }

  @Test
  void memoryOfGraphs_isMisusedInVain() {
    long graph = driver.graphs().graphCreate();
    AddedNode made =
        driver
            .graphs()
            .graphAddNode(
                0, graph, new long[0], new GraphNodeParams.Allocation(0, 64, List.of(), 0));
    assertFails(
        CudaStatus.INVALID_VALUE,
        "is not allocated",
        () -> driver.ordered().memFreeAsync(0, made.address(), stream));
    assertFails(
        CudaStatus.INVALID_VALUE,
        "of an allocation node",
        () -> add(0, graph, new GraphNodeParams.Free(memory)));
    long executable = instantiate(graph, 0).executable();
    driver.graphs().graphLaunch(0, executable, stream);
    driver.graphs().graphExecDestroy(executable);
    driver.graphs().graphDestroy(graph);
    driver.transfers().memsetD8Async(0, made.address(), (byte) 4, 64, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(read(made.address(), 2)).containsExactly(4, 4);
    driver.ordered().memFreeAsync(0, made.address(), stream);
    assertFails(
        CudaStatus.INVALID_VALUE,
        "",
        () -> driver.ordered().memFreeAsync(0, made.address(), stream));
    driver.streams().streamSynchronize(0, stream);
    assertThat(driver.graphs().deviceGetGraphMemAttribute(0, GraphMemAttribute.USED_CURRENT))
        .isZero();
  }

  /** The body of a launch that runs does what it did when that was launched. */
  @Test
  void updateOfABody_isForLaterLaunches() {
    long graph = driver.graphs().graphCreate();
    long condition = driver.graphs().graphConditionalHandleCreate(0, graph, 1, true);
    AddedNode node =
        driver
            .graphs()
            .graphAddNode(
                0,
                graph,
                new long[0],
                new GraphNodeParams.Conditional(condition, GraphConditionType.WHILE, 1));
    long body = add(0, node.bodies().getFirst(), kernel(condition, 1, false));
    long executable = instantiate(graph, 0).executable();
    CountDownLatch goOn = hold(0, stream);
    driver.graphs().graphLaunch(0, executable, stream);
    driver.graphs().graphExecNodeSetParams(0, executable, body, kernel(condition, 2, false));
    driver.graphs().graphLaunch(0, executable, stream);
    goOn.countDown();
    driver.streams().streamSynchronize(0, stream);
    assertThat(noted).containsExactly(1, 1, 1, 2, 2, 2);
  }

  @Test
  void loopWithoutEnd_isATimeout() {
    long graph = driver.graphs().graphCreate();
    long condition = driver.graphs().graphConditionalHandleCreate(0, graph, 1, true);
    AddedNode loop =
        driver
            .graphs()
            .graphAddNode(
                0,
                graph,
                new long[0],
                new GraphNodeParams.Conditional(condition, GraphConditionType.WHILE, 1));
    driver.graphs().graphLaunch(0, instantiate(graph, 0).executable(), stream);
    assertFails(
        CudaStatus.LAUNCH_TIMEOUT,
        "the loop of node 0x%x ran 1048576 times".formatted(loop.node()),
        () -> driver.streams().streamSynchronize(0, stream));
  }

  @Test
  void kernelThatSetsWhatIsNotThere_failsItsLaunch() {
    long graph = graph(kernel(0x5C00_0000_0000_0777L, 1, false));
    driver.graphs().graphLaunch(0, instantiate(graph, 0).executable(), stream);
    assertFails(
        CudaStatus.LAUNCH_FAILED,
        "condition: 0x",
        () -> driver.streams().streamSynchronize(0, stream));
  }
}

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
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.UserObject;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** Rules of graphs where only one of several nodes, edges or devices is the one that counts. */
class GraphExactRulesTest extends SimTestBase {
  private static final LaunchShape ONE =
      new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);
  private static final LaunchParameters NONE = new LaunchParameters(MemorySegment.NULL, List.of());

  private final long graph = driver.graphs().graphCreate();
  private final long stream = stream(0);

  private AddedNode add(int device, long to, GraphNodeParams params, long... after) {
    return driver.graphs().graphAddNode(device, to, after, params);
  }

  private long empty(long to, long... after) {
    return add(0, to, new GraphNodeParams.Empty(), after).node();
  }

  private InstantiatedGraph instantiate(long of, long flags) {
    return driver.graphs().graphInstantiateWithParams(0, of, flags, stream);
  }

  private static GraphNodeParams.Allocation allocation(long bytes) {
    return new GraphNodeParams.Allocation(0, bytes, List.of(), 0);
  }

  private long kernel(SimulatedKernel kernel) {
    long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(kernel)));
    return driver.kernels().libraryGetKernel(library, kernel.name());
  }

  @Test
  void graphsInsideOfOthers_areNotCounted() {
    long inner = driver.graphs().graphCreate();
    long node = add(0, graph, new GraphNodeParams.Child(inner)).node();
    assertThat(driver.liveGraphs()).isEqualTo(2);
    driver.graphs().graphDestroyNode(node);
    assertThat(driver.liveGraphs()).isEqualTo(2);
    driver.graphs().graphDestroy(inner);
    assertThat(driver.liveGraphs()).isEqualTo(1);
  }

  @Test
  void userObjects_areCounted() {
    UserObject first = driver.graphs().userObjectCreate();
    UserObject second = driver.graphs().userObjectCreate();
    assertThat(driver.liveUserObjects()).isEqualTo(2);
    driver.graphs().userObjectRelease(first.handle());
    assertThat(driver.liveUserObjects()).isEqualTo(1);
    driver.graphs().userObjectRelease(second.handle());
    assertThat(driver.liveUserObjects()).isZero();
  }

  /** Both ways, and one that is the same on both sides is no difference. */
  @Test
  void updateOfAnExecutableWithPriorities_takesTheSameOnes_andNoOthers() {
    SimulatedKernel same = SimulatedKernel.of("samePriority", _ -> {});
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(same)) {
      var params = new GraphNodeParams.Kernel(kernel(same), ONE, NONE);
      long node = add(0, graph, params).node();
      long other = driver.graphs().graphCreate();
      long otherNode = add(0, other, params).node();
      for (int priority : new int[] {0, -2}) {
        for (int otherPriority : new int[] {0, -2}) {
          driver.graphs().graphKernelNodeSetPriority(node, priority);
          driver.graphs().graphKernelNodeSetPriority(otherNode, otherPriority);
          long executable = instantiate(graph, 8).executable();
          assertThat(driver.graphs().graphExecUpdate(0, executable, other).result())
              .as("%d and %d", priority, otherPriority)
              .isEqualTo(priority == otherPriority ? 0 : 8);
          driver.graphs().graphExecDestroy(executable);
        }
      }
    }
  }

  @Test
  void edgeThatIsAddedTwiceInOneCall_isRefused() {
    GraphEdge edge = new GraphEdge(empty(graph), empty(graph));
    assertFails(
        CudaStatus.INVALID_VALUE,
        "is there already",
        () -> driver.graphs().graphAddDependencies(graph, List.of(edge, edge)));
    assertThat(driver.graphs().graphGetEdges(graph)).isEmpty();
  }

  @Test
  void cycle_isReportedWithANodeOfIt() {
    long before = empty(graph);
    long first = empty(graph, before);
    long second = empty(graph, first);
    driver.graphs().graphAddDependencies(graph, List.of(new GraphEdge(second, first)));
    for (long flags : new long[] {0, 4}) {
      assertThat(instantiate(graph, flags)).isEqualTo(new InstantiatedGraph(0, 2, first));
    }
  }

  @Test
  void freeBehindTheAllocationOfOtherMemory_isRefused() {
    AddedNode own = add(0, graph, allocation(64));
    AddedNode other = add(0, graph, allocation(64));
    long free = add(0, graph, new GraphNodeParams.Free(own.address()), other.node()).node();
    assertThat(instantiate(graph, 0)).isEqualTo(new InstantiatedGraph(0, 2, free));
  }

  @Test
  void freeOfOtherMemory_isAnotherParameter() {
    long owner = driver.graphs().graphCreate();
    long first = add(0, owner, allocation(64)).address();
    long second = add(0, owner, allocation(64)).address();
    long _ = add(0, graph, new GraphNodeParams.Free(first)).node();
    long executable = instantiate(graph, 0).executable();
    long other = driver.graphs().graphCreate();
    long free = add(0, other, new GraphNodeParams.Free(second)).node();
    assertThat(driver.graphs().graphExecUpdate(0, executable, other))
        .isEqualTo(new GraphUpdateResult(5, free, 0));
  }

  @Test
  void graphThatOnlyFrees_keepsItsNodesAndEdges_andIsNotCloned() {
    long address = add(0, driver.graphs().graphCreate(), allocation(64)).address();
    long free = add(0, graph, new GraphNodeParams.Free(address)).node();
    GraphEdge edge = new GraphEdge(free, empty(graph, free));
    List<ThrowingCallable> refused =
        List.of(
            () -> driver.graphs().graphDestroyNode(free),
            () -> driver.graphs().graphRemoveDependencies(graph, List.of(edge)),
            () -> driver.graphs().graphClone(graph));
    refused.forEach(
        call -> assertFails(CudaStatus.NOT_SUPPORTED, "nodes that allocate or free", call));
  }

  @Test
  void bodyBehindAGraphThatIsFine_isCheckedToItsEnd() {
    long condition = driver.graphs().graphConditionalHandleCreate(0, graph, 0, false);
    GraphNodeParams branch = new GraphNodeParams.Conditional(condition, GraphConditionType.IF, 1);
    long body = add(0, graph, branch).bodies().getFirst();
    long _ = add(0, body, new GraphNodeParams.Child(driver.graphs().graphCreate())).node();
    long host = add(0, body, new GraphNodeParams.Host(() -> {})).node();
    assertThat(instantiate(graph, 0)).isEqualTo(new InstantiatedGraph(0, 3, host));
  }

  @Test
  void nodeOfAnotherTypeAndPriority_isOfAnotherType() {
    SimulatedKernel nothing = SimulatedKernel.of("doesNothingAtAll", _ -> {});
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(nothing)) {
      long memory = driver.memory().memAlloc(0, 8);
      long node = add(0, graph, new GraphNodeParams.Kernel(kernel(nothing), ONE, NONE)).node();
      driver.graphs().graphKernelNodeSetPriority(node, -2);
      long executable = instantiate(graph, 8).executable();
      long other = driver.graphs().graphCreate();
      long fill = add(0, other, new GraphNodeParams.Fill(memory, 1, 1, 8)).node();
      assertThat(driver.graphs().graphExecUpdate(0, executable, other))
          .isEqualTo(new GraphUpdateResult(3, fill, 0));
    }
  }

  @Test
  void memoryOfSeveralLaunches_isUsedUntilTheLastOfThemHasFreedIt() {
    AddedNode made = add(0, graph, allocation(4 * MIB));
    long _ = add(0, graph, new GraphNodeParams.Free(made.address()), made.node()).node();
    long executable = instantiate(graph, 0).executable();
    CountDownLatch goOn = hold(0, stream);
    for (int launch = 0; launch < 3; launch++) {
      driver.graphs().graphLaunch(0, executable, stream);
    }
    assertThat(used()).isPositive();
    goOn.countDown();
    driver.streams().streamSynchronize(0, stream);
    assertThat(used()).isZero();
  }

  private long used() {
    return driver.graphs().deviceGetGraphMemAttribute(0, GraphMemAttribute.USED_CURRENT);
  }

  @Test
  void nodeBehindOneOfAnotherDevice_failsItsOwnDevice() {
    SimulatedKernel failing =
        SimulatedKernel.of(
            "failsOnItsDevice",
            _ -> {
              throw new IllegalStateException("it fails");
            });
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(failing)) {
      long memory = driver.memory().memAlloc(0, 8);
      long fill = add(0, graph, new GraphNodeParams.Fill(memory, 1, 1, 8)).node();
      GraphNodeParams behind = new GraphNodeParams.Kernel(kernel(failing), ONE, NONE);
      long _ = add(1, graph, behind, fill).node();
      driver.graphs().graphLaunch(0, instantiate(graph, 0).executable(), stream);
      driver.streams().streamSynchronize(0, stream);
      assertThat(read(memory, 1)).containsExactly(1);
      assertFails(CudaStatus.LAUNCH_FAILED, "it fails", () -> driver.devices().ctxSynchronize(1));
    }
  }

  @Test
  void nodeOfAnotherGraph_isNamedWithBoth() {
    long other = driver.graphs().graphCreate();
    long node = empty(other);
    assertFails(
        CudaStatus.INVALID_VALUE,
        "node: 0x%x of graph 0x%x (expected: of graph 0x%x)".formatted(node, other, graph),
        () ->
            driver
                .graphs()
                .graphAddDependencies(graph, List.of(new GraphEdge(node, empty(graph)))));
  }

  /** Nobody could make another node of it: what it reads is read by no other. */
  @Test
  void condition_isNotGivenBackByItsNode() {
    long condition = driver.graphs().graphConditionalHandleCreate(0, graph, 0, false);
    GraphNodeParams branch = new GraphNodeParams.Conditional(condition, GraphConditionType.IF, 1);
    long node = add(0, graph, branch).node();
    assertThat(driver.graphs().graphNodeGetParams(node)).isInstanceOf(GraphNodeParams.Other.class);
  }

  @Test
  void graphThatCanRun_namesNoNode_andIsUploadedWhereThatIsAsked() {
    long _ = empty(graph);
    long capturing = stream(0);
    driver.captures().streamBeginCapture(0, capturing, 2);
    for (long flags : new long[] {0, 1, 8}) {
      InstantiatedGraph made =
          driver.graphs().graphInstantiateWithParams(0, graph, flags, capturing);
      assertThat(made).isEqualTo(new InstantiatedGraph(made.executable(), 0, 0));
      assertThat(made.executable()).isNotZero();
    }
    assertFails(
        CudaStatus.STREAM_CAPTURE_UNSUPPORTED,
        "",
        () -> driver.graphs().graphInstantiateWithParams(0, graph, 2, capturing));
  }
}

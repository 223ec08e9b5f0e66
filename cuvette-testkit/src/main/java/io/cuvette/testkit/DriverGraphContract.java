package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphEdge;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.driver.InstantiatedGraph;
import io.cuvette.driver.UserObject;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * What every driver promises about graphs and what is instantiated from them. Extend it in the
 * tests of a driver.
 */
public abstract class DriverGraphContract {
  private static final int FREES_ON_LAUNCH = 1;
  private static final int NODE_PRIORITIES = 8;
  private static final int INVALID_STRUCTURE = 2;
  private static final int TOPOLOGY_CHANGED = 2;
  private static final int TYPE_CHANGED = 3;

  /** For subclasses. */
  protected DriverGraphContract() {}

  /**
   * Nodes, their types and their edges are what was added.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void nodesAndEdges_areWhatWasAdded(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      GraphCalls graphs = bench.graphs;
      long event = driver.events().eventCreate(0, 2);
      long graph = graphs.graphCreate();
      assertThat(graphs.graphGetNodes(graph)).isEmpty();
      assertThat(graphs.graphGetEdges(graph)).isEmpty();
      long fill = bench.add(graph, bench.fill(1));
      long kernel = bench.add(graph, bench.affine(1, 1), fill);
      long record = bench.add(graph, new GraphNodeParams.EventRecord(event), fill);
      long host = bench.add(graph, new GraphNodeParams.Host(() -> {}), fill);
      long end = bench.add(graph, new GraphNodeParams.Empty(), kernel, record, host);
      long wait = bench.add(graph, new GraphNodeParams.EventWait(event));
      assertThat(graphs.graphGetNodes(graph))
          .containsExactlyInAnyOrder(fill, kernel, record, host, end, wait);
      assertThat(graphs.graphGetRootNodes(graph)).containsExactlyInAnyOrder(fill, wait);
      assertThat(graphs.graphGetEdges(graph))
          .containsExactlyInAnyOrder(
              new GraphEdge(fill, kernel),
              new GraphEdge(fill, record),
              new GraphEdge(fill, host),
              new GraphEdge(kernel, end),
              new GraphEdge(record, end),
              new GraphEdge(host, end));
      assertThat(graphs.graphNodeGetDependencies(end))
          .containsExactlyInAnyOrder(kernel, record, host);
      assertThat(graphs.graphNodeGetDependencies(fill)).isEmpty();
      assertThat(graphs.graphNodeGetDependentNodes(fill))
          .containsExactlyInAnyOrder(kernel, record, host);
      assertThat(graphs.graphNodeGetType(fill)).isEqualTo(GraphNodeType.MEMSET);
      assertThat(graphs.graphNodeGetType(kernel)).isEqualTo(GraphNodeType.KERNEL);
      assertThat(graphs.graphNodeGetType(record)).isEqualTo(GraphNodeType.EVENT_RECORD);
      assertThat(graphs.graphNodeGetType(host)).isEqualTo(GraphNodeType.HOST);
      assertThat(graphs.graphNodeGetType(end)).isEqualTo(GraphNodeType.EMPTY);
      assertThat(graphs.graphNodeGetType(wait)).isEqualTo(GraphNodeType.WAIT_EVENT);
      assertThat(graphs.graphNodeGetParams(record))
          .isEqualTo(new GraphNodeParams.EventRecord(event));
      assertThat(graphs.graphNodeGetParams(wait)).isEqualTo(new GraphNodeParams.EventWait(event));
      assertThat(graphs.graphDebugDotPrint(graph, 0)).contains("digraph").contains("->");
      graphs.graphDestroy(graph);
      driver.events().eventDestroy(0, event);
    }
  }

  /**
   * The parameters of nodes can be read, those of a kernel with the values of its own.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void parameters_areRead_andChanged(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      long other = driver.memory().memAlloc(0, GraphBench.BYTES);
      long graph = bench.graphs.graphCreate();
      long fill = bench.add(graph, bench.fill(3));
      long kernel = bench.add(graph, bench.affine(2, 1), fill);
      GraphNodeParams.Copy copy = new GraphNodeParams.Copy(other, bench.numbers, GraphBench.BYTES);
      long copying = bench.add(graph, copy, kernel);
      assertThat(bench.graphs.graphNodeGetParams(fill)).isEqualTo(bench.fill(3));
      assertThat(bench.graphs.graphNodeGetParams(copying)).isEqualTo(copy);
      checkKernel(bench, kernel, 2, 1);
      long before = bench.instantiate(graph);
      bench.graphs.graphNodeSetParams(0, fill, bench.fill(10));
      bench.graphs.graphNodeSetParams(0, kernel, bench.affine(5, 7));
      checkKernel(bench, kernel, 5, 7);
      assertThat(bench.graphs.graphNodeGetParams(fill)).isEqualTo(bench.fill(10));
      assertThat(bench.run(before)).isEqualTo(7);
      assertThat(bench.at(other)).isEqualTo(7);
      assertThat(bench.runOnce(graph)).isEqualTo(57);
      assertThat(bench.at(other)).isEqualTo(57);
      bench.graphs.graphExecDestroy(before);
      bench.graphs.graphDestroy(graph);
      driver.memory().memFree(0, other);
    }
  }

  private static void checkKernel(GraphBench bench, long node, int factor, int more) {
    GraphNodeParams params = bench.graphs.graphNodeGetParams(node);
    GraphNodeParams.Kernel expected = bench.affine(factor, more);
    assertThat(params).isInstanceOf(GraphNodeParams.Kernel.class);
    GraphNodeParams.Kernel read = (GraphNodeParams.Kernel) params;
    assertThat(read.kernel()).isEqualTo(expected.kernel());
    assertThat(read.shape()).isEqualTo(expected.shape());
    if (!read.parameters().places().isEmpty()) { // the driver tells their sizes
      assertThat(read.parameters().places()).isEqualTo(expected.parameters().places());
      assertThat(read.parameters().values().asSlice(0, 20).toArray(ValueLayout.JAVA_BYTE))
          .isEqualTo(expected.parameters().values().asSlice(0, 20).toArray(ValueLayout.JAVA_BYTE));
    }
  }

  /**
   * Edges are added and removed all together or not at all; bad ones are refused.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void edges_areAddedAndRemoved(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      GraphCalls graphs = bench.graphs;
      long graph = graphs.graphCreate();
      long foreignGraph = graphs.graphCreate();
      long foreign = bench.add(foreignGraph, new GraphNodeParams.Empty());
      long a = bench.add(graph, bench.affine(2, 1));
      long b = bench.add(graph, bench.affine(3, 0));
      long c = bench.add(graph, bench.affine(1, 5));
      List<GraphEdge> chain = List.of(new GraphEdge(a, b), new GraphEdge(b, c));
      graphs.graphAddDependencies(graph, chain);
      assertThat(graphs.graphGetEdges(graph)).containsExactlyInAnyOrderElementsOf(chain);
      assertThat(bench.runOnce(graph)).isEqualTo(8);
      Refused.with(CudaStatus.INVALID_VALUE, () -> graphs.graphAddDependencies(graph, chain));
      Refused.with(
          CudaStatus.INVALID_VALUE,
          () -> graphs.graphAddDependencies(graph, List.of(new GraphEdge(a, foreign))));
      Refused.with(
          CudaStatus.INVALID_VALUE,
          () -> graphs.graphAddDependencies(graph, List.of(new GraphEdge(a, a))));
      Refused.with(
          CudaStatus.INVALID_VALUE,
          () -> graphs.graphRemoveDependencies(graph, List.of(new GraphEdge(a, c))));
      assertThat(graphs.graphGetEdges(graph)).containsExactlyInAnyOrderElementsOf(chain);
      graphs.graphRemoveDependencies(graph, chain);
      assertThat(graphs.graphGetEdges(graph)).isEmpty();
      graphs.graphAddDependencies(graph, List.of(new GraphEdge(c, b), new GraphEdge(b, a)));
      bench.set(0);
      assertThat(bench.runOnce(graph)).isEqualTo(31);
      graphs.graphDestroyNode(b);
      assertThat(graphs.graphGetNodes(graph)).containsExactlyInAnyOrder(a, c);
      assertThat(graphs.graphGetEdges(graph)).isEmpty();
      graphs.graphDestroy(foreignGraph);
      graphs.graphDestroy(graph);
    }
  }

  /**
   * A graph with a cycle is not instantiated.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void cycle_isRefused(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      long graph = bench.graphs.graphCreate();
      long a = bench.add(graph, new GraphNodeParams.Empty());
      long b = bench.add(graph, new GraphNodeParams.Empty(), a);
      long c = bench.add(graph, new GraphNodeParams.Empty(), b);
      bench.graphs.graphAddDependencies(graph, List.of(new GraphEdge(c, a)));
      InstantiatedGraph made = bench.graphs.graphInstantiateWithParams(0, graph, 0, 0);
      assertThat(made.result()).isEqualTo(INVALID_STRUCTURE);
      assertThat(made.executable()).isZero();
      bench.graphs.graphDestroy(graph);
    }
  }

  /**
   * Every launch runs all nodes, each after those that it waits for, also after the graph is gone.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void launches_runAllNodes_inOrderOfTheEdges(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      AtomicInteger calls = new AtomicInteger();
      long left = driver.memory().memAlloc(0, GraphBench.BYTES);
      long graph = bench.graphs.graphCreate();
      long start = bench.add(graph, bench.affine(3, 1));
      long copied =
          bench.add(graph, new GraphNodeParams.Copy(left, bench.numbers, GraphBench.BYTES), start);
      long changed = bench.add(graph, bench.affine(left, 2, 5), copied);
      long host = bench.add(graph, new GraphNodeParams.Host(calls::incrementAndGet), start);
      bench.add(
          graph, new GraphNodeParams.Copy(bench.numbers, left, GraphBench.BYTES), changed, host);
      long executable = bench.instantiate(graph, 2);
      bench.graphs.graphUpload(0, executable, bench.stream);
      bench.graphs.graphDestroy(graph);
      int expected = 0;
      for (int i = 0; i < 20; i++) {
        bench.launch(executable);
        expected = (expected * 3 + 1) * 2 + 5;
      }
      assertThat(bench.value()).isEqualTo(expected);
      assertThat(calls).hasValue(20);
      bench.launch(executable);
      bench.graphs.graphExecDestroy(executable);
      assertThat(bench.value()).isEqualTo((expected * 3 + 1) * 2 + 5);
      driver.memory().memFree(0, left);
    }
  }

  /**
   * A clone is a graph of its own, whose nodes are found.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void clone_isAGraphOfItsOwn(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      long graph = bench.graphs.graphCreate();
      UserObject object = driver.graphs().userObjectCreate();
      bench.graphs.graphRetainUserObject(graph, object.handle());
      long a = bench.add(graph, bench.affine(2, 3));
      long b = bench.add(graph, bench.affine(7, 0), a);
      long clone = bench.graphs.graphClone(graph);
      long inClone = bench.graphs.graphNodeFindInClone(b, clone);
      assertThat(bench.graphs.graphGetNodes(clone)).hasSize(2).contains(inClone);
      assertThat(bench.graphs.graphNodeGetDependencies(inClone))
          .containsExactly(bench.graphs.graphNodeFindInClone(a, clone));
      bench.graphs.graphNodeSetParams(0, inClone, bench.affine(5, 0));
      assertThat(bench.runOnce(graph)).isEqualTo(21);
      bench.graphs.graphDestroy(graph);
      bench.set(0);
      assertThat(bench.runOnce(clone)).isEqualTo(15);
      assertThat(object.isDestroyed()).isFalse();
      bench.graphs.graphDestroy(clone);
      GraphBench.awaitDestroyed(object);
    }
  }

  /**
   * A child node holds a clone of the graph, which can be asked and changed.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void childGraph_isACopy(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      long inner = bench.graphs.graphCreate();
      long innerNode = bench.add(inner, bench.affine(2, 1));
      long graph = bench.graphs.graphCreate();
      long first = bench.add(graph, bench.fill(10));
      long child = bench.add(graph, new GraphNodeParams.Child(inner), first);
      bench.add(graph, bench.affine(3, 0), child);
      bench.graphs.graphNodeSetParams(0, innerNode, bench.affine(100, 0));
      bench.graphs.graphDestroy(inner);
      assertThat(bench.runOnce(graph)).isEqualTo(63);
      assertThat(bench.graphs.graphNodeGetType(child)).isEqualTo(GraphNodeType.GRAPH);
      GraphNodeParams.Child params = (GraphNodeParams.Child) bench.graphs.graphNodeGetParams(child);
      long[] inside = bench.graphs.graphGetNodes(params.graph());
      assertThat(inside).hasSize(1);
      bench.graphs.graphNodeSetParams(0, inside[0], bench.affine(4, 1));
      assertThat(bench.runOnce(graph)).isEqualTo(123);
      bench.graphs.graphDestroy(graph);
    }
  }

  /**
   * Nodes of an executable change what they do, and can be left out, for later launches alone.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void nodesOfAnExecutable_change(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      AtomicInteger calls = new AtomicInteger();
      long graph = bench.graphs.graphCreate();
      long fill = bench.add(graph, bench.fill(1));
      long kernel = bench.add(graph, bench.affine(2, 3), fill);
      long host = bench.add(graph, new GraphNodeParams.Host(() -> {}), kernel);
      long executable = bench.instantiate(graph);
      bench.launch(executable);
      bench.graphs.graphExecNodeSetParams(0, executable, kernel, bench.affine(5, 0));
      assertThat(bench.value()).isEqualTo(5);
      bench.graphs.graphExecNodeSetParams(0, executable, fill, bench.fill(4));
      bench.graphs.graphExecNodeSetParams(
          0, executable, host, new GraphNodeParams.Host(calls::incrementAndGet));
      assertThat(bench.run(executable)).isEqualTo(20);
      assertThat(calls).hasValue(1);
      assertThat(bench.graphs.graphNodeGetEnabled(executable, kernel)).isTrue();
      bench.graphs.graphNodeSetEnabled(executable, kernel, false);
      assertThat(bench.graphs.graphNodeGetEnabled(executable, kernel)).isFalse();
      assertThat(bench.run(executable)).isEqualTo(4);
      bench.graphs.graphNodeSetEnabled(executable, kernel, true);
      assertThat(bench.run(executable)).isEqualTo(20);
      Refused.with(
          CudaStatus.INVALID_VALUE,
          () -> bench.graphs.graphNodeSetEnabled(executable, host, false));
      assertThat(bench.runOnce(graph)).isEqualTo(5);
      bench.graphs.graphExecDestroy(executable);
      bench.graphs.graphDestroy(graph);
    }
  }

  /**
   * An executable is updated from a graph with the same topology; others are refused and change
   * nothing.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void update_fromAGraphOfTheSameTopology(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      long graph = chain(bench, bench.affine(2, 1), bench.affine(3, 0));
      long executable = bench.instantiate(graph);
      long same = chain(bench, bench.affine(5, 1), bench.affine(7, 0));
      long longer = chain(bench, bench.affine(2, 1), bench.affine(3, 0), bench.affine(1, 1));
      long otherType = chain(bench, bench.affine(2, 1), bench.fill(9));
      assertThat(bench.graphs.graphExecUpdate(0, executable, longer).result())
          .isEqualTo(TOPOLOGY_CHANGED);
      assertThat(bench.graphs.graphExecUpdate(0, executable, otherType).result())
          .isEqualTo(TYPE_CHANGED);
      assertThat(bench.run(executable)).isEqualTo(3);
      assertThat(bench.graphs.graphExecUpdate(0, executable, same).result()).isZero();
      bench.graphs.graphDestroy(same);
      bench.set(0);
      assertThat(bench.run(executable)).isEqualTo(7);
      bench.graphs.graphExecDestroy(executable);
      bench.graphs.graphDestroy(longer);
      bench.graphs.graphDestroy(otherType);
      bench.graphs.graphDestroy(graph);
    }
  }

  private static long chain(GraphBench bench, GraphNodeParams... all) {
    long graph = bench.graphs.graphCreate();
    long last = bench.add(graph, new GraphNodeParams.Empty());
    for (GraphNodeParams params : all) {
      last = bench.add(graph, params, last);
    }
    return graph;
  }

  /**
   * Kernel nodes have priorities, and an executable knows its flags.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void prioritiesAndFlags_areKept(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      int greatest = driver.devices().ctxGetStreamPriorityRange(0).greatest();
      long graph = bench.graphs.graphCreate();
      long kernel = bench.add(graph, bench.affine(2, 1));
      long empty = bench.add(graph, new GraphNodeParams.Empty(), kernel);
      bench.graphs.graphKernelNodeSetPriority(kernel, greatest);
      assertThat(bench.graphs.graphKernelNodeGetPriority(kernel)).isEqualTo(greatest);
      Refused.withAny(() -> bench.graphs.graphKernelNodeSetPriority(empty, greatest));
      long executable = bench.instantiate(graph, NODE_PRIORITIES);
      // Driver 580 does not tell this flag.
      assertThat(bench.graphs.graphExecGetFlags(executable)).isIn(0L, (long) NODE_PRIORITIES);
      long freeing = bench.instantiate(graph, FREES_ON_LAUNCH);
      assertThat(bench.graphs.graphExecGetFlags(freeing)).isEqualTo(FREES_ON_LAUNCH);
      bench.graphs.graphExecDestroy(freeing);
      assertThat(bench.run(executable)).isEqualTo(1);
      bench.graphs.graphExecDestroy(executable);
      bench.graphs.graphDestroy(graph);
    }
  }

  /**
   * Event nodes order launches with other streams.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void eventNodes_orderLaunchesWithOtherStreams(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      long other = driver.streams().streamCreateWithPriority(0, 1, 0);
      long before = driver.events().eventCreate(0, 2);
      long after = driver.events().eventCreate(0, 2);
      long graph = bench.graphs.graphCreate();
      long wait = bench.add(graph, new GraphNodeParams.EventWait(before));
      long kernel = bench.add(graph, bench.affine(3, 1), wait);
      bench.add(graph, new GraphNodeParams.EventRecord(after), kernel);
      long executable = bench.instantiate(graph);
      for (int i = 0; i < 10; i++) {
        driver.transfers().memsetD32Async(0, bench.numbers, i, GraphBench.COUNT, other);
        driver.events().eventRecord(0, before, other);
        bench.launch(executable);
        driver.streams().streamWaitEvent(0, other, after);
        driver.streams().streamSynchronize(0, other);
        assertThat(driver.events().eventQuery(0, after)).isTrue();
        assertThat(bench.value()).isEqualTo(3 * i + 1);
      }
      bench.graphs.graphExecDestroy(executable);
      bench.graphs.graphDestroy(graph);
      driver.events().eventDestroy(0, before);
      driver.events().eventDestroy(0, after);
      driver.streams().streamDestroy(0, other);
    }
  }
}

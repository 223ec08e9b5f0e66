package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.InstantiatedGraph;
import java.util.List;

/** What every driver refuses about graphs. Extend it in the tests of a driver. */
public abstract class DriverGraphRulesContract {
  private static final int FREES_ON_LAUNCH = 1;
  private static final int FROM_DEVICES = 4;
  private static final int OPERATION_NOT_SUPPORTED = 3;

  /** For subclasses. */
  protected DriverGraphRulesContract() {}

  private static void invalid(Runnable call) {
    Refused.with(CudaStatus.INVALID_VALUE, call);
  }

  private static InstantiatedGraph fromDevices(GraphBench bench, long graph) {
    return bench.graphs.graphInstantiateWithParams(0, graph, FROM_DEVICES, 0);
  }

  /**
   * A graph that the device launches has work, and nothing but work, also in graphs inside.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void graphForLaunchesFromTheDevice_hasWorkAlone(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      long empty = bench.graphs.graphCreate();
      invalid(() -> fromDevices(bench, empty));
      long around = bench.graphs.graphCreate();
      bench.add(around, new GraphNodeParams.Child(empty));
      invalid(() -> fromDevices(bench, around));
      long inside = bench.graphs.graphCreate();
      bench.add(inside, bench.fill(1));
      long graph = bench.graphs.graphCreate();
      bench.add(graph, bench.fill(1));
      bench.add(graph, new GraphNodeParams.Child(inside));
      InstantiatedGraph made = fromDevices(bench, graph);
      assertThat(made.result()).isZero();
      bench.graphs.graphExecDestroy(made.executable());
      invalid(() ->
          bench.graphs.graphInstantiateWithParams(0, graph, FROM_DEVICES | FREES_ON_LAUNCH, 0));
      long none = bench.add(graph, new GraphNodeParams.Empty());
      assertThat(fromDevices(bench, graph))
          .isEqualTo(new InstantiatedGraph(0, OPERATION_NOT_SUPPORTED, none));
      bench.graphs.graphDestroyNode(none);
      bench.add(inside, new GraphNodeParams.Empty());
      bench.add(graph, new GraphNodeParams.Child(inside));
      assertThat(fromDevices(bench, graph).result()).isEqualTo(OPERATION_NOT_SUPPORTED);
      for (long each : new long[] {inside, graph, around, empty}) {
        bench.graphs.graphDestroy(each);
      }
    }
  }

  /**
   * Fills of no bytes or of elements of no size, and nodes of another graph or named twice.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void nodesThatNobodyCanAdd_areRefused(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      long graph = bench.graphs.graphCreate();
      long node = bench.add(graph, bench.fill(1));
      invalid(() -> bench.add(graph, new GraphNodeParams.Fill(bench.numbers, 0, 3, 4)));
      invalid(() -> bench.add(graph, new GraphNodeParams.Fill(bench.numbers, 0, 4, 0)));
      invalid(() -> bench.add(graph, bench.fill(1), node, node));
      assertThat(bench.graphs.graphGetNodes(graph)).containsExactly(node);
      long other = bench.graphs.graphCreate();
      invalid(() -> bench.graphs.graphNodeFindInClone(node, other));
      long child = bench.add(other, new GraphNodeParams.Child(graph));
      if (bench.graphs.graphNodeGetParams(child) instanceof GraphNodeParams.Child(long inside)) {
        invalid(() -> bench.graphs.graphDestroy(inside));
        assertThat(bench.graphs.graphGetNodes(inside)).hasSize(1);
      }
      bench.graphs.graphDestroy(other);
      bench.graphs.graphDestroy(graph);
    }
  }

  /**
   * Memory of a graph is not known before a launch allocates it.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void memoryOfAGraph_isNotKnownBeforeALaunch(CudaDriver driver) {
    long graph = driver.graphs().graphCreate();
    long address =
        driver
            .graphs()
            .graphAddNode(
                0, graph, new long[0], new GraphNodeParams.Allocation(0, 64, List.of(), 0))
            .address();
    for (int each : new int[] {2, 9, 12, 14, 16}) {
      invalid(() -> driver.memory().pointerGetAttribute(0, each, address));
    }
    driver.graphs().graphDestroy(graph);
  }
}

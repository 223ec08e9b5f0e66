package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.GraphConditionType;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import org.junit.jupiter.api.Assumptions;

/**
 * What every driver promises about conditional nodes, where it has them. Extend it in the tests of
 * a driver.
 */
public abstract class DriverConditionContract {
  private static final int CUDA_12_8 = 12_080;

  /** For subclasses. */
  protected DriverConditionContract() {}

  private static GraphBench bench(CudaDriver driver) {
    int version = driver.devices().driverGetVersion();
    Assumptions.assumeTrue(version >= CUDA_12_8, "conditional nodes of CUDA 12.8, not " + version);
    return new GraphBench(driver);
  }

  /** A graph whose first node sets a condition to a number of memory, and then reads it. */
  private record Chosen(GraphBench bench, long graph, long number, AddedNode node) {
    static Chosen of(GraphBench bench, GraphConditionType type, int size) {
      long number = bench.driver.memory().memAlloc(0, Integer.BYTES);
      long graph = bench.graphs.graphCreate();
      long condition = bench.graphs.graphConditionalHandleCreate(0, graph, 0, true);
      long kernel = bench.add(graph, bench.conditional("choose", condition, number));
      AddedNode node =
          bench.graphs.graphAddNode(
              0,
              graph,
              new long[] {kernel},
              new GraphNodeParams.Conditional(condition, type, size));
      assertThat(node.bodies()).hasSize(size).doesNotHaveDuplicates();
      assertThat(bench.graphs.graphNodeGetType(node.node())).isEqualTo(GraphNodeType.CONDITIONAL);
      return new Chosen(bench, graph, number, node);
    }

    /** What a launch gives with a number. */
    int with(long executable, int value) {
      bench.set(0);
      bench.driver.transfers().memsetD32Async(0, number, value, 1, bench.stream);
      return bench.run(executable);
    }

    void end(long executable) {
      bench.graphs.graphExecDestroy(executable);
      bench.graphs.graphDestroy(graph);
      bench.driver.memory().memFree(0, number);
    }
  }

  /**
   * An IF runs one of its bodies, or none.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void if_runsOneBody(CudaDriver driver) {
    try (GraphBench bench = bench(driver)) {
      for (int size = 1; size <= 2; size++) {
        Chosen chosen = Chosen.of(bench, GraphConditionType.IF, size);
        long first = bench.add(chosen.node.bodies().getFirst(), bench.affine(1, 1));
        bench.add(chosen.node.bodies().getFirst(), bench.affine(10, 0), first);
        if (size == 2) {
          bench.add(chosen.node.bodies().getLast(), bench.affine(1, 20));
        }
        bench.add(chosen.graph, bench.affine(1, 3), chosen.node.node());
        long executable = bench.instantiate(chosen.graph);
        assertThat(chosen.with(executable, 1)).isEqualTo(13);
        assertThat(chosen.with(executable, 0)).isEqualTo(size == 1 ? 3 : 23);
        assertThat(chosen.with(executable, -1)).isEqualTo(13);
        chosen.end(executable);
      }
    }
  }

  /**
   * A SWITCH runs the body of a number, or none.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void switch_runsTheBodyOfTheNumber(CudaDriver driver) {
    try (GraphBench bench = bench(driver)) {
      Chosen chosen = Chosen.of(bench, GraphConditionType.SWITCH, 3);
      for (int i = 0; i < 3; i++) {
        bench.add(chosen.node.bodies().get(i), bench.affine(1, 10 * (i + 1)));
      }
      long executable = bench.instantiate(chosen.graph);
      assertThat(chosen.with(executable, 0)).isEqualTo(10);
      assertThat(chosen.with(executable, 2)).isEqualTo(30);
      assertThat(chosen.with(executable, 3)).isZero();
      assertThat(chosen.with(executable, 1)).isEqualTo(20);
      chosen.end(executable);
    }
  }

  /**
   * A WHILE runs its body, which a capture made, until the condition is 0.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void while_runsItsBodyAgainAndAgain(CudaDriver driver) {
    try (GraphBench bench = bench(driver)) {
      long number = driver.memory().memAlloc(0, Integer.BYTES);
      long graph = bench.graphs.graphCreate();
      long condition = bench.graphs.graphConditionalHandleCreate(0, graph, 1, true);
      AddedNode node =
          bench.graphs.graphAddNode(
              0,
              graph,
              new long[0],
              new GraphNodeParams.Conditional(condition, GraphConditionType.WHILE, 1));
      long body = node.bodies().getFirst();
      driver
          .captures()
          .streamBeginCaptureToGraph(0, bench.stream, body, new long[0], GraphBench.RELAXED);
      bench.launchKernel(bench.affine(2, 1));
      bench.launchKernel(bench.conditional("countDown", condition, number));
      assertThat(driver.captures().streamEndCapture(0, bench.stream)).isEqualTo(body);
      bench.add(graph, bench.affine(1, 1000), node.node());
      long executable = bench.instantiate(graph);
      for (int turns = 1; turns < 9; turns += 3) {
        bench.set(0);
        driver.transfers().memsetD32Async(0, number, turns, 1, bench.stream);
        assertThat(bench.run(executable)).isEqualTo((1 << turns) - 1 + 1000);
      }
      bench.set(0);
      driver.transfers().memsetD32Async(0, number, 1, 1, bench.stream);
      bench.launch(executable);
      bench.launch(executable); // one turn more, as the number is 0 by now
      assertThat(bench.value()).isEqualTo(2 * (1 + 1000) + 1 + 1000);
      bench.graphs.graphExecDestroy(executable);
      bench.graphs.graphDestroy(graph);
      driver.memory().memFree(0, number);
    }
  }

  /**
   * Conditions that no node reads, of other graphs, and sizes that no type has are refused.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void badConditions_areRefused(CudaDriver driver) {
    try (GraphBench bench = bench(driver)) {
      long graph = bench.graphs.graphCreate();
      long other = bench.graphs.graphCreate();
      long condition = bench.graphs.graphConditionalHandleCreate(0, graph, 1, true);
      Refused.withAny(() -> add(bench, other, condition, GraphConditionType.IF, 1));
      Refused.withAny(() -> add(bench, graph, condition, GraphConditionType.IF, 3));
      Refused.withAny(() -> add(bench, graph, condition, GraphConditionType.WHILE, 2));
      Refused.withAny(() -> add(bench, graph, condition, GraphConditionType.SWITCH, 0));
      assertThat(bench.graphs.graphGetNodes(graph)).isEmpty();
      assertThat(instantiates(bench, graph)).isFalse();
      add(bench, graph, condition, GraphConditionType.IF, 1);
      Refused.withAny(() -> bench.graphs.graphClone(graph));
      assertThat(instantiates(bench, graph)).isTrue();
      bench.graphs.graphDestroy(other);
      bench.graphs.graphDestroy(graph);
    }
  }

  private static void add(
      GraphBench bench, long graph, long condition, GraphConditionType type, int size) {
    AddedNode _ =
        bench.graphs.graphAddNode(
            0, graph, new long[0], new GraphNodeParams.Conditional(condition, type, size));
  }

  private static boolean instantiates(GraphBench bench, long graph) {
    long executable;
    try {
      executable = bench.graphs.graphInstantiateWithParams(0, graph, 0, 0).executable();
    } catch (CudaException e) {
      return false;
    }
    if (executable != 0) {
      bench.graphs.graphExecDestroy(executable);
    }
    return executable != 0;
  }
}

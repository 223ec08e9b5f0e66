package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphEdge;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * What every driver promises about the nodes that captured work becomes. Extend it in the tests of
 * a driver.
 */
public abstract class DriverCapturedGraphContract {

  /** For subclasses. */
  protected DriverCapturedGraphContract() {}

  private static List<GraphNodeType> types(GraphBench bench, long graph) {
    return Arrays.stream(bench.graphs.graphGetNodes(graph))
        .mapToObj(bench.graphs::graphNodeGetType)
        .toList();
  }

  /**
   * Captured work becomes nodes in a row, whose parameters are those of the calls.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void capturedWork_isNodes(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      AtomicInteger calls = new AtomicInteger();
      List<GraphNodeType> added = new ArrayList<>();
      long other = driver.memory().memAlloc(0, GraphBench.BYTES);
      long graph =
          bench.capture(() -> {
            driver.transfers().memsetD32Async(0, bench.numbers, 3, GraphBench.COUNT, bench.stream);
            added.add(newest(bench));
            bench.launchKernel(bench.affine(2, 1));
            added.add(newest(bench));
            driver.transfers().memcpyAsync(0, other, bench.numbers, GraphBench.BYTES, bench.stream);
            added.add(newest(bench));
            driver.streams().launchHostFunc(0, bench.stream, calls::incrementAndGet);
            added.add(newest(bench));
          });
      assertThat(added)
          .containsExactly(
              GraphNodeType.MEMSET, GraphNodeType.KERNEL, GraphNodeType.MEMCPY, GraphNodeType.HOST);
      assertThat(bench.graphs.graphGetEdges(graph)).hasSize(3);
      long fill = bench.graphs.graphGetRootNodes(graph)[0];
      assertThat(bench.graphs.graphNodeGetParams(fill)).isEqualTo(bench.fill(3));
      long kernel = bench.graphs.graphNodeGetDependentNodes(fill)[0];
      GraphNodeParams.Kernel launch =
          (GraphNodeParams.Kernel) bench.graphs.graphNodeGetParams(kernel);
      assertThat(launch.shape()).isEqualTo(bench.affine(2, 1).shape());
      long copy = bench.graphs.graphNodeGetDependentNodes(kernel)[0];
      assertThat(bench.graphs.graphNodeGetParams(copy))
          .isEqualTo(new GraphNodeParams.Copy(other, bench.numbers, GraphBench.BYTES));
      assertThat(calls).hasValue(0);
      long executable = bench.instantiate(graph);
      bench.graphs.graphExecNodeSetParams(0, executable, kernel, bench.affine(10, 0));
      for (int i = 1; i <= 3; i++) {
        bench.set(0);
        assertThat(bench.run(executable)).isEqualTo(30);
        assertThat(bench.at(other)).isEqualTo(30);
        assertThat(calls).hasValue(i);
      }
      bench.graphs.graphExecDestroy(executable);
      bench.graphs.graphDestroy(graph);
      driver.memory().memFree(0, other);
    }
  }

  /** The type of the node that the next work of the stream waits for. */
  private static GraphNodeType newest(GraphBench bench) {
    long[] nodes = bench.driver.captures().streamGetCaptureDependencies(0, bench.stream);
    assertThat(nodes).hasSize(1);
    return bench.graphs.graphNodeGetType(nodes[0]);
  }

  /**
   * Forks and joins by events become edges, and no nodes.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void forksAndJoins_areEdges(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      long side = driver.streams().streamCreateWithPriority(0, 1, 0);
      long event = driver.events().eventCreate(0, 2);
      long other = driver.memory().memAlloc(0, GraphBench.BYTES);
      long[] nodes = new long[4];
      long graph =
          bench.capture(() -> {
            bench.launchKernel(bench.affine(2, 1));
            nodes[0] = only(driver, bench.stream);
            driver.events().eventRecord(0, event, bench.stream);
            driver.streams().streamWaitEvent(0, side, event);
            driver.transfers().memsetD32Async(0, other, 9, GraphBench.COUNT, side);
            nodes[1] = only(driver, side);
            bench.launchKernel(bench.affine(3, 0));
            nodes[2] = only(driver, bench.stream);
            driver.events().eventRecord(0, event, side);
            driver.streams().streamWaitEvent(0, bench.stream, event);
            bench.launchKernel(bench.affine(other, 2, 0));
            nodes[3] = only(driver, bench.stream);
          });
      assertThat(bench.graphs.graphGetNodes(graph)).containsExactlyInAnyOrder(nodes);
      assertThat(bench.graphs.graphGetEdges(graph))
          .containsExactlyInAnyOrder(
              new GraphEdge(nodes[0], nodes[1]),
              new GraphEdge(nodes[0], nodes[2]),
              new GraphEdge(nodes[1], nodes[3]),
              new GraphEdge(nodes[2], nodes[3]));
      assertThat(bench.runOnce(graph)).isEqualTo(3);
      assertThat(bench.at(other)).isEqualTo(18);
      assertThat(bench.runOnce(graph)).isEqualTo(21);
      assertThat(bench.at(other)).isEqualTo(18);
      bench.graphs.graphDestroy(graph);
      driver.memory().memFree(0, other);
      driver.events().eventDestroy(0, event);
      driver.streams().streamDestroy(0, side);
    }
  }

  private static long only(CudaDriver driver, long stream) {
    long[] nodes = driver.captures().streamGetCaptureDependencies(0, stream);
    assertThat(nodes).hasSize(1);
    return nodes[0];
  }

  /**
   * Nodes that a program adds during a capture take part in it once the stream waits for them.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void dependenciesOfACapture_areReplaced(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      assertThat(driver.captures().streamGetCaptureDependencies(0, bench.stream)).isEmpty();
      Refused.with(
          CudaStatus.ILLEGAL_STATE,
          () -> driver.captures().streamUpdateCaptureDependencies(0, bench.stream, new long[0]));
      long graph =
          bench.capture(() -> {
            assertThat(driver.captures().streamGetCaptureDependencies(0, bench.stream)).isEmpty();
            bench.launchKernel(bench.affine(2, 1));
            long into = driver.captures().streamGetCaptureInfo(0, bench.stream).graph();
            long node = bench.add(into, bench.affine(5, 0), only(driver, bench.stream));
            driver.captures().streamUpdateCaptureDependencies(0, bench.stream, new long[] {node});
            assertThat(only(driver, bench.stream)).isEqualTo(node);
            bench.launchKernel(bench.affine(1, 2));
          });
      assertThat(bench.graphs.graphGetEdges(graph)).hasSize(2);
      assertThat(bench.runOnce(graph)).isEqualTo(7);
      bench.graphs.graphDestroy(graph);
    }
  }

  /**
   * A capture adds to a graph that is there, behind some of its nodes.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void captureIntoAGraph_addsToIt(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      long graph = bench.graphs.graphCreate();
      long fill = bench.add(graph, bench.fill(4));
      driver
          .captures()
          .streamBeginCaptureToGraph(0, bench.stream, graph, new long[] {fill}, GraphBench.RELAXED);
      assertThat(only(driver, bench.stream)).isEqualTo(fill);
      bench.launchKernel(bench.affine(2, 1));
      assertThat(driver.captures().streamEndCapture(0, bench.stream)).isEqualTo(graph);
      assertThat(types(bench, graph))
          .containsExactlyInAnyOrder(GraphNodeType.MEMSET, GraphNodeType.KERNEL);
      assertThat(bench.runOnce(graph)).isEqualTo(9);
      bench.graphs.graphDestroy(graph);
    }
  }

  /**
   * A launch of a graph into a capture is refused, and the capture is lost.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void launchIntoACapture_isRefused_andTheCaptureIsLost(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      long inner = bench.graphs.graphCreate();
      bench.add(inner, bench.affine(2, 1));
      long executable = bench.instantiate(inner);
      Refused.with(
          CudaStatus.STREAM_CAPTURE_INVALIDATED,
          () ->
              bench.capture(() ->
                  Refused.with(
                      CudaStatus.STREAM_CAPTURE_UNSUPPORTED, () -> bench.launch(executable))));
      bench.graphs.graphExecDestroy(executable);
      bench.graphs.graphDestroy(inner);
    }
  }
}

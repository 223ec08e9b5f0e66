package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import java.util.Arrays;
import java.util.List;

/**
 * What every driver promises about the nodes of graphs that allocate and free. Extend it in the
 * tests of a driver.
 */
public abstract class DriverGraphMemoryContract {
  private static final int FREES_ON_LAUNCH = 1;
  private static final long BYTES = 8 << 20;

  /** For subclasses. */
  protected DriverGraphMemoryContract() {}

  private static AddedNode allocate(GraphBench bench, long graph, long... dependencies) {
    AddedNode node =
        bench.graphs.graphAddNode(
            0,
            graph,
            dependencies,
            new GraphNodeParams.Allocation(0, GraphBench.BYTES, List.of(), 0));
    assertThat(node.address()).isNotZero();
    return node;
  }

  private static GraphNodeParams.Copy copy(long target, long source) {
    return new GraphNodeParams.Copy(target, source, GraphBench.BYTES);
  }

  private static long used(GraphBench bench) {
    return bench.graphs.deviceGetGraphMemAttribute(0, GraphMemAttribute.USED_CURRENT);
  }

  /**
   * Memory that a graph allocates and frees has the same address in every launch.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void memoryOfAGraph_isThereInEveryLaunch(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      long graph = bench.graphs.graphCreate();
      AddedNode memory = allocate(bench, graph);
      long in = bench.add(graph, copy(memory.address(), bench.numbers), memory.node());
      long kernel = bench.add(graph, bench.affine(memory.address(), 3, 1), in);
      long out = bench.add(graph, copy(bench.numbers, memory.address()), kernel);
      long free = bench.add(graph, new GraphNodeParams.Free(memory.address()), out);
      GraphNodeParams.Allocation params =
          (GraphNodeParams.Allocation) bench.graphs.graphNodeGetParams(memory.node());
      assertThat(params.address()).isEqualTo(memory.address());
      assertThat(params.bytes()).isEqualTo(GraphBench.BYTES);
      assertThat(bench.graphs.graphNodeGetParams(free))
          .isEqualTo(new GraphNodeParams.Free(memory.address()));
      long executable = bench.instantiate(graph);
      bench.graphs.graphUpload(0, executable, bench.stream);
      int expected = 0;
      for (int i = 0; i < 10; i++) {
        bench.launch(executable);
        expected = 3 * expected + 1;
      }
      assertThat(bench.value()).isEqualTo(expected);
      bench.graphs.graphExecDestroy(executable);
      bench.graphs.graphDestroy(graph);
    }
  }

  /**
   * What a launch leaves allocated has to be freed before the next launch, by the program or by a
   * flag.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void memoryThatALaunchLeaves_isFreed_beforeTheNext(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      long graph = bench.graphs.graphCreate();
      AddedNode memory = allocate(bench, graph);
      bench.add(graph, copy(memory.address(), bench.numbers), memory.node());
      long executable = bench.instantiate(graph);
      for (int i = 1; i < 4; i++) {
        bench.set(i);
        bench.launch(executable);
        assertThat(bench.at(memory.address())).isEqualTo(i);
        assertThat(used(bench)).isGreaterThanOrEqualTo(GraphBench.BYTES);
        Refused.with(CudaStatus.INVALID_VALUE, () -> bench.launch(executable));
        driver.ordered().memFreeAsync(0, memory.address(), bench.stream);
        bench.sync();
      }
      bench.graphs.graphExecDestroy(executable);
      long freeing = bench.instantiate(graph, FREES_ON_LAUNCH);
      bench.launch(freeing);
      bench.set(7);
      bench.launch(freeing);
      assertThat(bench.at(memory.address())).isEqualTo(7);
      driver.ordered().memFreeAsync(0, memory.address(), bench.stream);
      bench.sync();
      bench.graphs.graphExecDestroy(freeing);
      bench.graphs.graphDestroy(graph);
    }
  }

  /**
   * What one graph allocates, another one frees.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void memoryOfOneGraph_isFreedByAnother(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      long graph = bench.graphs.graphCreate();
      AddedNode memory = allocate(bench, graph);
      bench.add(graph, copy(memory.address(), bench.numbers), memory.node());
      long consumer = bench.graphs.graphCreate();
      long kernel = bench.add(consumer, bench.affine(memory.address(), 2, 1));
      long out = bench.add(consumer, copy(bench.numbers, memory.address()), kernel);
      bench.add(consumer, new GraphNodeParams.Free(memory.address()), out);
      long first = bench.instantiate(graph);
      long second = bench.instantiate(consumer);
      for (int i = 0; i < 3; i++) {
        bench.launch(first);
        bench.launch(second);
      }
      assertThat(bench.value()).isEqualTo(7);
      bench.graphs.graphExecDestroy(first);
      bench.graphs.graphExecDestroy(second);
      bench.graphs.graphDestroy(graph);
      bench.graphs.graphDestroy(consumer);
    }
  }

  /**
   * Graphs with such nodes are not cloned, not embedded, have one executable at a time, and keep
   * their nodes.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void whatSuchGraphsCannot_isRefused(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      long graph = bench.graphs.graphCreate();
      AddedNode memory = allocate(bench, graph);
      long free = bench.add(graph, new GraphNodeParams.Free(memory.address()), memory.node());
      long outer = bench.graphs.graphCreate();
      Refused.withAny(() -> bench.graphs.graphClone(graph));
      Refused.withAny(() -> bench.add(outer, new GraphNodeParams.Child(graph)));
      Refused.withAny(() -> bench.graphs.graphDestroyNode(free));
      Refused.withAny(
          () -> bench.add(graph, new GraphNodeParams.Free(memory.address()), memory.node()));
      Refused.withAny(() -> bench.add(outer, new GraphNodeParams.Allocation(0, 0, List.of(), 0)));
      long executable = bench.instantiate(graph);
      assertThat(instantiates(bench, graph)).isFalse();
      bench.graphs.graphExecDestroy(executable);
      assertThat(instantiates(bench, graph)).isTrue();
      bench.graphs.graphDestroy(outer);
      bench.graphs.graphDestroy(graph);
    }
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

  /**
   * Allocations and frees of a stream that is captured become nodes.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void capturedAllocations_areNodes(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      long graph =
          bench.capture(() -> {
            long memory = driver.ordered().memAllocAsync(0, GraphBench.BYTES, bench.stream);
            driver.transfers().memsetD32Async(0, memory, 5, GraphBench.COUNT, bench.stream);
            bench.launchKernel(bench.affine(memory, 2, 1));
            driver
                .transfers()
                .memcpyAsync(0, bench.numbers, memory, GraphBench.BYTES, bench.stream);
            driver.ordered().memFreeAsync(0, memory, bench.stream);
          });
      assertThat(
              Arrays.stream(bench.graphs.graphGetNodes(graph))
                  .mapToObj(bench.graphs::graphNodeGetType))
          .containsExactlyInAnyOrder(
              GraphNodeType.MEM_ALLOC,
              GraphNodeType.MEMSET,
              GraphNodeType.KERNEL,
              GraphNodeType.MEMCPY,
              GraphNodeType.MEM_FREE);
      long executable = bench.instantiate(graph);
      bench.graphs.graphDestroy(graph);
      for (int i = 0; i < 3; i++) {
        bench.set(0);
        assertThat(bench.run(executable)).isEqualTo(11);
      }
      bench.graphs.graphExecDestroy(executable);
    }
  }

  /**
   * The device tells how much memory its graphs use, and gives back what they do not.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void memoryOfGraphs_isCounted_andTrimmed(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      long graph = bench.graphs.graphCreate();
      AddedNode memory =
          bench.graphs.graphAddNode(
              0, graph, new long[0], new GraphNodeParams.Allocation(0, BYTES, List.of(), 0));
      long executable = bench.instantiate(graph);
      bench.launch(executable);
      bench.sync();
      assertThat(used(bench)).isGreaterThanOrEqualTo(BYTES);
      assertThat(bench.graphs.deviceGetGraphMemAttribute(0, GraphMemAttribute.USED_HIGH))
          .isGreaterThanOrEqualTo(used(bench));
      long reserved =
          bench.graphs.deviceGetGraphMemAttribute(0, GraphMemAttribute.RESERVED_CURRENT);
      assertThat(reserved).isGreaterThanOrEqualTo(used(bench));
      driver.ordered().memFreeAsync(0, memory.address(), bench.stream);
      bench.sync();
      bench.graphs.graphExecDestroy(executable);
      bench.graphs.graphDestroy(graph);
      bench.graphs.deviceGraphMemTrim(0);
      assertThat(bench.graphs.deviceGetGraphMemAttribute(0, GraphMemAttribute.RESERVED_CURRENT))
          .isLessThan(reserved);
      bench.graphs.deviceResetGraphMemAttribute(0, GraphMemAttribute.USED_HIGH);
      assertThat(bench.graphs.deviceGetGraphMemAttribute(0, GraphMemAttribute.USED_HIGH))
          .isEqualTo(used(bench));
      Refused.withAny(
          () -> bench.graphs.deviceResetGraphMemAttribute(0, GraphMemAttribute.USED_CURRENT));
    }
  }
}

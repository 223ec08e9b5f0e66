package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.GraphNodeParams;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * What every driver promises about Java functions in graphs: each launch runs them once, whatever
 * became of the graph that they came from. Extend it in the tests of a driver.
 */
public abstract class DriverHostNodeContract {
  private static final int LAUNCHES = 10;

  /** For subclasses. */
  protected DriverHostNodeContract() {}

  /** A graph whose one node counts. */
  private static long counting(GraphBench bench, AtomicInteger count) {
    long graph = bench.graphs.graphCreate();
    bench.add(graph, new GraphNodeParams.Host(count::incrementAndGet));
    return graph;
  }

  /** Launches some times, with graphs made and destroyed meanwhile, and destroys the executable. */
  private static void launchAndDestroy(GraphBench bench, long executable) {
    for (int i = 0; i < LAUNCHES; i++) {
      bench.launch(executable);
      bench.graphs.graphDestroy(counting(bench, new AtomicInteger()));
    }
    bench.graphs.graphExecDestroy(executable);
    bench.sync();
  }

  /**
   * A node of a clone runs after the graph is gone.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void functionOfAClone_runsInEachLaunch(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      AtomicInteger count = new AtomicInteger();
      long graph = counting(bench, count);
      long clone = bench.graphs.graphClone(graph);
      bench.graphs.graphDestroy(graph);
      long executable = bench.instantiate(clone);
      bench.graphs.graphDestroy(clone);
      launchAndDestroy(bench, executable);
      assertThat(count).hasValue(LAUNCHES);
    }
  }

  /**
   * A node of a child graph runs after both graphs are gone.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void functionOfAChildGraph_runsInEachLaunch(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      AtomicInteger count = new AtomicInteger();
      long inner = counting(bench, count);
      long graph = bench.graphs.graphCreate();
      bench.add(graph, new GraphNodeParams.Child(inner));
      bench.graphs.graphDestroy(inner);
      long executable = bench.instantiate(graph);
      bench.graphs.graphDestroy(graph);
      launchAndDestroy(bench, executable);
      assertThat(count).hasValue(LAUNCHES);
    }
  }

  /**
   * A child graph that an executable was given instead of another one runs after it is gone.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void functionOfAnotherChildGraph_runsInEachLaunch(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      AtomicInteger before = new AtomicInteger();
      AtomicInteger count = new AtomicInteger();
      long inner = counting(bench, before);
      long graph = bench.graphs.graphCreate();
      long child = bench.add(graph, new GraphNodeParams.Child(inner));
      long executable = bench.instantiate(graph);
      long other = counting(bench, count);
      bench.graphs.graphExecNodeSetParams(0, executable, child, new GraphNodeParams.Child(other));
      bench.graphs.graphDestroy(other);
      bench.graphs.graphDestroy(inner);
      bench.graphs.graphDestroy(graph);
      launchAndDestroy(bench, executable);
      assertThat(before).hasValue(0);
      assertThat(count).hasValue(LAUNCHES);
    }
  }

  /**
   * An executable that was updated runs the functions of the graph that it was updated from, also
   * after that is gone.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void functionOfAnUpdate_runsInEachLaunch(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      AtomicInteger before = new AtomicInteger();
      AtomicInteger count = new AtomicInteger();
      long graph = counting(bench, before);
      long executable = bench.instantiate(graph);
      bench.launch(executable);
      long other = counting(bench, count);
      assertThat(bench.graphs.graphExecUpdate(0, executable, other).result()).isZero();
      bench.graphs.graphDestroy(graph);
      bench.graphs.graphDestroy(other);
      launchAndDestroy(bench, executable);
      assertThat(before).hasValue(1);
      assertThat(count).hasValue(LAUNCHES);
    }
  }

  /**
   * A function that a node was given, in a graph or in an executable, runs after the graph is gone.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void functionThatANodeWasGiven_runsInEachLaunch(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      AtomicInteger before = new AtomicInteger();
      AtomicInteger ofGraph = new AtomicInteger();
      AtomicInteger ofExecutable = new AtomicInteger();
      long graph = bench.graphs.graphCreate();
      long node = bench.add(graph, new GraphNodeParams.Host(before::incrementAndGet));
      long first = bench.instantiate(graph);
      bench.graphs.graphNodeSetParams(0, node, new GraphNodeParams.Host(ofGraph::incrementAndGet));
      long second = bench.instantiate(graph);
      long third = bench.instantiate(graph);
      bench.graphs.graphExecNodeSetParams(
          0, third, node, new GraphNodeParams.Host(ofExecutable::incrementAndGet));
      bench.graphs.graphDestroy(graph);
      launchAndDestroy(bench, first);
      launchAndDestroy(bench, second);
      launchAndDestroy(bench, third);
      assertThat(before).hasValue(LAUNCHES);
      assertThat(ofGraph).hasValue(LAUNCHES);
      assertThat(ofExecutable).hasValue(LAUNCHES);
    }
  }

  /**
   * A function that is launched into a capture runs in each launch, after the graph is gone, and
   * not before.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void capturedFunction_runsInEachLaunch(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver)) {
      AtomicInteger count = new AtomicInteger();
      long graph =
          bench.capture(
              () -> driver.streams().launchHostFunc(0, bench.stream, count::incrementAndGet));
      assertThat(count).hasValue(0);
      long executable = bench.instantiate(graph);
      bench.graphs.graphDestroy(graph);
      launchAndDestroy(bench, executable);
      assertThat(count).hasValue(LAUNCHES);
    }
  }
}

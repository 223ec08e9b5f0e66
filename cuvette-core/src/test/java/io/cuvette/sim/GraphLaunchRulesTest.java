package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphConditionType;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What a launch of a graph waits for, and what it does when a device has failed. */
class GraphLaunchRulesTest {
  private static final LaunchShape ONE =
      new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);
  private static final long[] NONE = {};

  private final SimulatedKernel failing =
      SimulatedKernel.of(
          "failsAtOnce",
          _ -> {
            throw new IllegalStateException("it fails");
          });
  private final SimulatedKernels.Registered registered = SimulatedKernels.register(failing);
  private final SimulatedDriver driver =
      SimulatedDriver.open(SimulatedOptions.parse("devices=2,pace=eager,memory=64MiB"));
  private final long one = driver.streams().streamCreateWithPriority(0, 1, 0);
  private final long other = driver.streams().streamCreateWithPriority(0, 1, 0);
  private final List<CountDownLatch> holds = new ArrayList<>();

  @AfterEach
  void close() {
    holds.forEach(CountDownLatch::countDown);
    registered.close();
    driver.close();
  }

  private CountDownLatch hold(long stream) {
    CountDownLatch goOn = SimTestBase.hold(driver, 0, stream);
    holds.add(goOn);
    return goOn;
  }

  private long add(int device, long graph, GraphNodeParams params) {
    return driver.graphs().graphAddNode(device, graph, NONE, params).node();
  }

  /** The number of the next thing that has one. */
  private long number() {
    long memory = driver.memory().memAlloc(0, 8);
    long number = driver.memory().pointerGetAttribute(0, 7, memory);
    driver.memory().memFree(0, memory);
    return number;
  }

  /** Else each launch would leave something behind as long as the executable is there. */
  @Test
  void laterLaunches_useTheLanesOfTheFirst() {
    long memory = driver.memory().memAlloc(0, 64);
    long graph = driver.graphs().graphCreate();
    for (int i = 0; i < 4; i++) {
      add(0, graph, new GraphNodeParams.Fill(memory + i * 8, 1, 1, 8));
    }
    long executable = executable(graph);
    driver.graphs().graphLaunch(0, executable, one);
    for (int i = 0; i < 3; i++) {
      long before = number();
      driver.graphs().graphLaunch(0, executable, one);
      assertThat(number() - before).isEqualTo(1);
    }
    driver.streams().streamSynchronize(0, one);
  }

  /** However fast the simulation is: on the device the first launch is not over yet. */
  @Test
  void launchInAnotherStream_beginsWhenTheOneBeforeHasEnded() {
    long bytes = 16L << 20;
    long memory = driver.memory().memAlloc(0, bytes);
    long graph = driver.graphs().graphCreate();
    long[] before = NONE;
    for (int i = 0; i < 20; i++) {
      GraphNodeParams fill = new GraphNodeParams.Fill(memory, 1, 1, bytes);
      before = new long[] {driver.graphs().graphAddNode(0, graph, before, fill).node()};
    }
    long begun = driver.events().eventCreate(0, 0);
    add(0, graph, new GraphNodeParams.EventRecord(begun));
    long executable = executable(graph);
    long ended = driver.events().eventCreate(0, 0);
    driver.graphs().graphLaunch(0, executable, one);
    driver.events().eventRecord(0, ended, one);
    driver.graphs().graphLaunch(0, executable, other);
    driver.devices().ctxSynchronize(0);
    assertThat(driver.events().eventElapsedTime(0, ended, begun)).isNotNegative();
  }

  private long executable(GraphNodeParams params) {
    long graph = driver.graphs().graphCreate();
    add(0, graph, params);
    return executable(graph);
  }

  private long executable(long graph) {
    return driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
  }

  /** The parameters of a node with a graph inside a graph inside, and work in the innermost. */
  private GraphNodeParams nested(int device, GraphNodeParams params, int depth) {
    long inner = driver.graphs().graphCreate();
    add(device, inner, depth > 1 ? nested(device, params, depth - 1) : params);
    return new GraphNodeParams.Child(inner);
  }

  /** A graph with a conditional node and something in its body. */
  private long conditional(GraphConditionType type, int value, GraphNodeParams inside) {
    long graph = driver.graphs().graphCreate();
    long condition = driver.graphs().graphConditionalHandleCreate(0, graph, value, true);
    long body =
        driver
            .graphs()
            .graphAddNode(0, graph, NONE, new GraphNodeParams.Conditional(condition, type, 1))
            .bodies()
            .getFirst();
    add(0, body, inside);
    return graph;
  }

  private void fail(int device, long stream) {
    long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(failing)));
    long kernel = driver.kernels().libraryGetKernel(library, failing.name());
    LaunchParameters none = new LaunchParameters(MemorySegment.NULL, List.of());
    driver.kernels().launchKernel(device, stream, kernel, ONE, none);
  }

  /** What one launch does is not done before the one that came before has ended, anywhere. */
  @Test
  void launchesOfAnExecutable_areOneAfterTheOther_inAnyStreams() {
    List<Integer> order = new ArrayList<>();
    long graph = driver.graphs().graphCreate();
    long node = add(0, graph, new GraphNodeParams.Host(() -> order.add(1)));
    long executable = executable(graph);
    CountDownLatch goOn = hold(one);
    driver.graphs().graphLaunch(0, executable, one);
    driver
        .graphs()
        .graphExecNodeSetParams(0, executable, node, new GraphNodeParams.Host(() -> order.add(2)));
    long third = driver.streams().streamCreateWithPriority(0, 1, 0);
    driver.graphs().graphLaunch(0, executable, other);
    driver.graphs().graphUpload(0, executable, third);
    for (long stream : new long[] {one, other, third}) {
      assertThat(driver.streams().streamQuery(0, stream)).isFalse();
    }
    assertThat(order).isEmpty();
    goOn.countDown();
    driver.streams().streamSynchronize(0, other);
    assertThat(order).containsExactly(1, 2);
  }

  @Test
  void waitForAnEventThatWasNeverRecorded_isNone_atAnyDepth() {
    long event = driver.events().eventCreate(0, 0);
    GraphNodeParams wait = new GraphNodeParams.EventWait(event);
    for (GraphNodeParams each : List.of(wait, nested(0, wait, 1), nested(0, wait, 2))) {
      driver.graphs().graphLaunch(0, executable(each), one);
      driver.streams().streamSynchronize(0, one);
      assertThat(driver.streams().streamQuery(0, one)).isTrue();
    }
  }

  @Test
  void waitOfAGraph_isForTheRecordBeforeTheLaunch_atAnyDepth() {
    long event = driver.events().eventCreate(0, 0);
    GraphNodeParams wait = new GraphNodeParams.EventWait(event);
    for (GraphNodeParams each : List.of(wait, nested(0, wait, 1), nested(0, wait, 2))) {
      long executable = executable(each);
      CountDownLatch goOn = hold(other);
      driver.events().eventRecord(0, event, other);
      driver.graphs().graphLaunch(0, executable, one);
      long later = driver.streams().streamCreateWithPriority(0, 1, 0);
      driver.events().eventRecord(0, event, later);
      assertThat(driver.streams().streamQuery(0, later)).isTrue();
      assertThat(driver.streams().streamQuery(0, one)).isFalse();
      goOn.countDown();
      driver.streams().streamSynchronize(0, one);
    }
  }

  /** What a launch waits for stays where it is, and takes nothing of the launch to its stream. */
  @Test
  void workBehindAWaitOfAGraph_isInNoStreamOfTheProgram() {
    long memory = driver.memory().memAlloc(0, 64);
    long event = driver.events().eventCreate(0, 0);
    driver.events().eventRecord(0, event, other);
    long graph = driver.graphs().graphCreate();
    long wait = add(0, graph, new GraphNodeParams.EventWait(event));
    GraphNodeParams fill = new GraphNodeParams.Fill(memory, 1, 1, 64);
    long last = driver.graphs().graphAddNode(0, graph, new long[] {wait}, fill).node();
    assertThat(driver.graphs().graphGetNodes(graph)).containsExactly(wait, last);
    hold(other);
    driver.graphs().graphLaunch(0, executable(graph), one);
    driver.streams().streamSynchronize(0, one);
    assertThat(driver.streams().streamQuery(0, other)).isFalse();
  }

  @Test
  void upload_isWorkOfItsStream() {
    try (SimulatedDriver lazy = SimulatedDriver.open(SimulatedOptions.parse("pace=lazy"))) {
      long stream = lazy.streams().streamCreateWithPriority(0, 1, 0);
      long graph = lazy.graphs().graphCreate();
      long executable = lazy.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
      assertThat(lazy.streams().streamQuery(0, stream)).isTrue();
      lazy.graphs().graphUpload(0, executable, stream);
      assertThat(lazy.streams().streamQuery(0, stream)).isFalse();
      lazy.streams().streamSynchronize(0, stream);
      assertThat(lazy.streams().streamQuery(0, stream)).isTrue();
    }
  }

  @Test
  void launchThatNeedsAFailedDevice_isRefused_atAnyDepth() {
    long memory = driver.memory().memAlloc(1, 64);
    GraphNodeParams fill = new GraphNodeParams.Fill(memory, 1, 1, 64);
    List<Long> executables = new ArrayList<>();
    for (GraphNodeParams each : List.of(fill, nested(1, fill, 1), nested(1, fill, 2))) {
      long graph = driver.graphs().graphCreate();
      add(each == fill ? 1 : 0, graph, each);
      executables.add(executable(graph));
    }
    fail(1, 0);
    CudaStatus status = CudaStatus.LAUNCH_FAILED;
    SimTestBase.assertFails(status, "it fails", () -> driver.streams().streamSynchronize(1, 0));
    for (long executable : executables) {
      SimTestBase.assertFails(
          status, "it fails", () -> driver.graphs().graphLaunch(0, executable, one));
      SimTestBase.assertFails(
          status, "it fails", () -> driver.graphs().graphUpload(0, executable, one));
    }
    driver.streams().streamSynchronize(0, one);
  }

  @Test
  void nodeInsideANode_isChangedInTheExecutable_atAnyDepth() {
    List<Integer> ran = new ArrayList<>();
    GraphNodeParams first = new GraphNodeParams.Host(() -> ran.add(1));
    GraphNodeParams second = new GraphNodeParams.Host(() -> ran.add(2));
    for (int depth = 1; depth <= 3; depth++) {
      long graph = driver.graphs().graphCreate();
      long node = add(0, graph, nested(0, first, depth));
      long executable = executable(graph);
      for (int level = 0; level < depth; level++) {
        if (driver.graphs().graphNodeGetParams(node) instanceof GraphNodeParams.Child(long in)) {
          node = driver.graphs().graphGetNodes(in)[0];
        }
      }
      driver.graphs().graphExecNodeSetParams(0, executable, node, second);
      driver.graphs().graphLaunch(0, executable, one);
      driver.streams().streamSynchronize(0, one);
      assertThat(ran).containsOnly(2).hasSize(depth);
    }
  }

  /** Turns of a condition that never come do not keep what waits behind them. */
  @Test
  void conditionsOfALaunch_endWithTheDevice() {
    long memory = driver.memory().memAlloc(0, 64);
    GraphNodeParams fill = new GraphNodeParams.Fill(memory, 1, 1, 64);
    List<Long> executables = new ArrayList<>();
    for (GraphConditionType type : GraphConditionType.values()) {
      int value = type == GraphConditionType.SWITCH ? 0 : 1;
      executables.add(executable(conditional(type, value, fill)));
    }
    CountDownLatch goOn = hold(one);
    fail(0, one);
    for (long executable : executables) {
      driver.graphs().graphLaunch(0, executable, one);
      driver.graphs().graphLaunch(0, executable, other);
    }
    goOn.countDown();
    for (long stream : new long[] {one, other}) {
      SimTestBase.assertFails(
          CudaStatus.LAUNCH_FAILED,
          "it fails",
          () -> driver.streams().streamSynchronize(0, stream));
    }
    executables.forEach(driver.graphs()::graphExecDestroy);
    driver.streams().streamSynchronize(1, 0);
  }

  /** Nor do they keep a stream of another device, which goes on. */
  @Test
  void streamOfAnotherDevice_doesNotWaitForConditionsOfAFailedOne() {
    long memory = driver.memory().memAlloc(0, 64);
    GraphNodeParams fill = new GraphNodeParams.Fill(memory, 1, 1, 64);
    long elsewhere = driver.streams().streamCreateWithPriority(1, 1, 0);
    CountDownLatch goOn = SimTestBase.hold(driver, 1, elsewhere);
    holds.add(goOn);
    long executable = executable(conditional(GraphConditionType.WHILE, 1, fill));
    driver.graphs().graphLaunch(1, executable, elsewhere);
    fail(0, one);
    SimTestBase.assertFails(
        CudaStatus.LAUNCH_FAILED, "it fails", () -> driver.streams().streamSynchronize(0, one));
    goOn.countDown();
    driver.streams().streamSynchronize(1, elsewhere);
    assertThat(driver.streams().streamQuery(1, elsewhere)).isTrue();
  }
}

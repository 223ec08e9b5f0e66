package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.InstantiatedGraph;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What launches of graphs use: memory that is gone or is another's, and races. */
class SanitizerReplayTest {
  private static final long BYTES = 4096;
  private static final int RELAXED = 2;

  private final List<SanitizerReport> reports = new CopyOnWriteArrayList<>();
  private final SanitizerDriver driver =
      SanitizerDriver.reporting(
          SimulatedDriver.open(SimulatedOptions.DEFAULTS.withSeed(5)), reports::add, Misuse.LEAK);
  private final long one = driver.streams().streamCreateWithPriority(0, 1, 0);
  private final long other = driver.streams().streamCreateWithPriority(0, 1, 0);
  private long memory = driver.memory().memAlloc(0, BYTES);

  @AfterEach
  void close() {
    driver.close();
  }

  private void fill(long stream) {
    driver.transfers().memsetD8Async(0, memory, (byte) 7, BYTES, stream);
  }

  private long captured(Runnable body) {
    driver.captures().streamBeginCapture(0, one, RELAXED);
    body.run();
    return instantiate(driver.captures().streamEndCapture(0, one));
  }

  private long instantiate(long graph) {
    return driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
  }

  private void launch(long executable, long stream) {
    driver.graphs().graphLaunch(0, executable, stream);
  }

  private SanitizerReport only(Misuse misuse) {
    assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(misuse);
    return reports.getFirst();
  }

  @Test
  void launchesThatAreOrdered_areSilent() {
    long executable = captured(() -> fill(one));
    fill(one);
    launch(executable, one);
    launch(executable, other);
    launch(executable, one);
    driver.streams().streamSynchronize(0, one);
    fill(other);
    driver.streams().streamSynchronize(0, other);
    driver.graphs().graphExecDestroy(executable);
    driver.memory().memFree(0, memory);
    assertThat(reports).isEmpty();
  }

  @Test
  void launchThatUsesFreedMemory_isNamed_evenIfItsAddressIsGivenOutAgain() {
    long executable = captured(() -> fill(one));
    launch(executable, one);
    driver.streams().streamSynchronize(0, one);
    assertThat(reports).isEmpty();
    long before = memory;
    for (int i = 0; i < 10_000 && (i == 0 || memory != before); i++) {
      driver.memory().memFree(0, memory);
      memory = driver.memory().memAlloc(0, BYTES);
    }
    launch(executable, one);
    SanitizerReport report = only(Misuse.USE_AFTER_FREE);
    assertThat(report.message()).contains("write of 4096 bytes at 0x%x".formatted(before));
    assertThat(report.sites().getFirst().call()).startsWith("graphLaunch(");
    assertThat(report.sites().get(1).call()).startsWith("memFree(");
  }

  @Test
  void launchBesideWorkOfAnotherStream_isARace() {
    long executable = captured(() -> fill(one));
    fill(other);
    launch(executable, one);
    assertThat(only(Misuse.RACE).sites().getFirst().call()).startsWith("graphLaunch(");
  }

  @Test
  void twoExecutablesOnTwoStreams_areARace_andOneIsNot() {
    long graph = driver.graphs().graphCreate();
    driver
        .graphs()
        .graphAddNode(0, graph, new long[0], new GraphNodeParams.Fill(memory, 3, 1, BYTES));
    long first = instantiate(graph);
    long second = instantiate(graph);
    launch(first, one);
    launch(first, other);
    assertThat(reports).isEmpty();
    driver.devices().ctxSynchronize(0);
    launch(first, one);
    launch(second, other);
    assertThat(only(Misuse.RACE).message()).contains("write of 4096 bytes");
  }

  @Test
  void memoryFreedWhileALaunchMayUseIt_isNamed() {
    long executable = captured(() -> fill(one));
    launch(executable, one);
    driver.memory().memFree(0, memory);
    assertThat(only(Misuse.FREE_WHILE_IN_USE).sites().get(1).call()).startsWith("graphLaunch(");
  }

  @Test
  void changedAndDisabledNodes_useWhatTheyUseNow() {
    long graph = driver.graphs().graphCreate();
    long node =
        driver
            .graphs()
            .graphAddNode(0, graph, new long[0], new GraphNodeParams.Fill(memory, 3, 1, BYTES))
            .node();
    long executable = instantiate(graph);
    long spare = driver.memory().memAlloc(0, BYTES);
    driver
        .graphs()
        .graphExecNodeSetParams(0, executable, node, new GraphNodeParams.Fill(spare, 3, 1, BYTES));
    fill(other);
    launch(executable, one);
    driver.devices().ctxSynchronize(0);
    driver.memory().memFree(0, spare);
    driver.graphs().graphNodeSetEnabled(executable, node, false);
    launch(executable, one);
    assertThat(reports).isEmpty();
    driver.graphs().graphNodeSetEnabled(executable, node, true);
    assertThat(driver.graphs().graphExecUpdate(0, executable, graph).result()).isZero();
    launch(executable, one);
    assertThat(reports).isEmpty();
    fill(other);
    only(Misuse.RACE);
  }

  @Test
  void disabledNode_usesNothing_besideWorkBeforeTheLaunchAndBehindIt() {
    long graph = driver.graphs().graphCreate();
    var fill = new GraphNodeParams.Fill(memory, 3, 1, BYTES);
    long node = driver.graphs().graphAddNode(0, graph, new long[0], fill).node();
    long executable = instantiate(graph);
    driver.graphs().graphNodeSetEnabled(executable, node, false);
    fill(other);
    launch(executable, one);
    fill(other);
    assertThat(reports).isEmpty();
  }

  @Test
  void memoryOfTheGraph_isItsOwnBusiness() {
    long[] address = new long[1];
    long executable =
        captured(() -> {
          address[0] = driver.ordered().memAllocAsync(0, BYTES, one);
          driver.transfers().memsetD8Async(0, address[0], (byte) 1, BYTES, one);
          long gone = driver.ordered().memAllocAsync(0, BYTES, one);
          driver.transfers().memcpyAsync(0, gone, address[0], BYTES, one);
          driver.ordered().memFreeAsync(0, gone, one);
        });
    for (int i = 0; i < 3; i++) {
      launch(executable, one);
      driver.transfers().memcpyAsync(0, memory, address[0], BYTES, one);
      driver.ordered().memFreeAsync(0, address[0], one);
    }
    assertThat(reports).isEmpty();
    driver.transfers().memcpyAsync(0, memory, address[0], BYTES, one);
    only(Misuse.USE_AFTER_FREE);
  }

  @Test
  void memoryThatALaunchFrees_isThereUntilTheLaunch() {
    long[] address = new long[1];
    launch(captured(() -> address[0] = driver.ordered().memAllocAsync(0, BYTES, one)), one);
    driver.streams().streamSynchronize(0, one);
    driver.transfers().memsetD8Async(0, address[0], (byte) 1, BYTES, other);
    long freeing = captured(() -> driver.ordered().memFreeAsync(0, address[0], one));
    driver.transfers().memsetD8Async(0, address[0], (byte) 1, BYTES, other);
    driver.streams().streamSynchronize(0, other);
    launch(freeing, one);
    assertThat(reports).isEmpty();
    driver.transfers().memsetD8Async(0, address[0], (byte) 1, BYTES, one);
    SanitizerReport report = only(Misuse.USE_AFTER_FREE);
    assertThat(report.sites().get(1).call()).startsWith("graphLaunch(");
  }

  @Test
  void memoryOfACapture_isFreedThere() {
    long _ =
        captured(() -> {
          long address = driver.ordered().memAllocAsync(0, BYTES, one);
          driver.ordered().memFreeAsync(0, address, one);
          driver.transfers().memsetD8Async(0, address, (byte) 1, BYTES, one);
        });
    only(Misuse.USE_AFTER_FREE);
  }

  /** Each launch of the one graph gives the other one memory at the same address. */
  @Test
  void memoryOfAnotherGraph_isThereAgain_withEachLaunchOfThat() {
    long[] address = new long[1];
    long allocating = captured(() -> address[0] = driver.ordered().memAllocAsync(0, BYTES, one));
    launch(allocating, one);
    long using =
        captured(() -> driver.transfers().memsetD8Async(0, address[0], (byte) 1, BYTES, one));
    for (int i = 0; i < 3; i++) {
      launch(using, one);
      driver.ordered().memFreeAsync(0, address[0], one);
      launch(allocating, one);
    }
    assertThat(reports).isEmpty();
  }

  @Test
  void memoryThatALaunchLeft_isNoLeak_forItMayBeThatOfTheNext() {
    List<SanitizerReport> leaks = new CopyOnWriteArrayList<>();
    SanitizerDriver own =
        SanitizerDriver.reporting(
            SimulatedDriver.open(SimulatedOptions.DEFAULTS.withSeed(5)), leaks::add);
    long stream = own.streams().streamCreateWithPriority(0, 1, 0);
    own.captures().streamBeginCapture(0, stream, RELAXED);
    long address = own.ordered().memAllocAsync(0, BYTES, stream);
    long graph = own.captures().streamEndCapture(0, stream);
    long executable = own.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    own.graphs().graphLaunch(0, executable, stream);
    own.streams().streamDestroy(0, stream);
    own.graphs().graphDestroy(graph);
    own.close();
    assertThat(leaks).noneMatch(leak -> leak.message().contains("block 0x%x".formatted(address)));
  }

  /** A simulated device whose driver does not tell what a node does. */
  private static SanitizerDriver notTelling(CudaStatus status, AtomicInteger instantiated) {
    CudaDriver below = SimulatedDriver.open(SimulatedOptions.DEFAULTS.withSeed(5));
    return SanitizerDriver.reporting(
        new ForwardingDriver(below) {
          private final GraphCalls graphs =
              new ForwardingGraphs(below.graphs()) {
                @Override
                public GraphNodeParams graphNodeGetParams(long node) {
                  throw new CudaException(status, "cuGraphMemsetNodeGetParams", "for a test");
                }

                @Override
                public InstantiatedGraph graphInstantiateWithParams(
                    int device, long graph, long flags, long uploadStream) {
                  instantiated.incrementAndGet();
                  return super.graphInstantiateWithParams(device, graph, flags, uploadStream);
                }
              };

          @Override
          public GraphCalls graphs() {
            return graphs;
          }
        },
        _ -> {},
        Misuse.LEAK);
  }

  private static InstantiatedGraph instantiateOnOne(CudaDriver on) {
    long some = on.memory().memAlloc(0, BYTES);
    long graph = on.graphs().graphCreate();
    try {
      on.graphs().graphAddNode(0, graph, new long[0], new GraphNodeParams.Fill(some, 3, 1, BYTES));
      return on.graphs().graphInstantiateWithParams(0, graph, 0, 0);
    } finally {
      on.graphs().graphDestroy(graph);
      on.memory().memFree(0, some);
    }
  }

  @Test
  void driverThatIsTooOldToTell_isNoReasonToFail() {
    for (CudaStatus status :
        List.of(CudaStatus.NOT_SUPPORTED, CudaStatus.CALL_REQUIRES_NEWER_DRIVER)) {
      try (SanitizerDriver old = notTelling(status, new AtomicInteger())) {
        long executable = instantiateOnOne(old).executable();
        assertThat(executable).isNotZero();
        old.graphs().graphExecDestroy(executable);
      }
    }
  }

  @Test
  void errorOfAQuestion_isThrown_beforeAnythingIsInstantiated() {
    AtomicInteger instantiated = new AtomicInteger();
    try (SanitizerDriver failing = notTelling(CudaStatus.OUT_OF_MEMORY, instantiated)) {
      assertThatThrownBy(() -> instantiateOnOne(failing))
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY));
    }
    assertThat(instantiated).hasValue(0);
  }

  private long graphOf(GraphNodeParams node) {
    long graph = driver.graphs().graphCreate();
    assertThat(driver.graphs().graphAddNode(0, graph, new long[0], node)).isNotNull();
    return graph;
  }

  @Test
  void updateThatIsRefused_leavesTheNodesAsTheyWere() {
    long executable = instantiate(graphOf(new GraphNodeParams.Fill(memory, 3, 1, BYTES)));
    long empty = graphOf(new GraphNodeParams.Empty());
    assertThat(driver.graphs().graphExecUpdate(0, executable, empty).result()).isNotZero();
    fill(other);
    launch(executable, one);
    only(Misuse.RACE);
  }

  @Test
  void memoryThatAGraphFreesItself_isNotThereBehindALaunch() {
    long graph = driver.graphs().graphCreate();
    AddedNode made =
        driver
            .graphs()
            .graphAddNode(
                0, graph, new long[0], new GraphNodeParams.Allocation(0, BYTES, List.of(), 0));
    long address =
        ((GraphNodeParams.Allocation) driver.graphs().graphNodeGetParams(made.node())).address();
    driver
        .graphs()
        .graphAddNode(0, graph, new long[] {made.node()}, new GraphNodeParams.Free(address));
    launch(instantiate(graph), one);
    driver.streams().streamSynchronize(0, one);
    assertThat(reports).isEmpty();
    assertThat(driver.leaks())
        .extracting(SanitizerReport::message)
        .noneMatch(text -> text.contains("0x%x".formatted(address)));
    assertThatThrownBy(() -> driver.ordered().memFreeAsync(0, address, one))
        .isInstanceOf(CudaException.class);
    assertThat(reports).hasSize(1);
  }

  /** It may have been freed by somebody who asks the driver himself. */
  @Test
  void memoryThatIsGoneUnseen_isNoFreedMemory() {
    SimulatedDriver below = SimulatedDriver.open(SimulatedOptions.DEFAULTS.withSeed(5));
    try (SanitizerDriver above = SanitizerDriver.reporting(below, reports::add, Misuse.LEAK)) {
      long address = above.memory().memAlloc(0, BYTES);
      long graph = above.graphs().graphCreate();
      GraphNodeParams fill = new GraphNodeParams.Fill(address, 3, 1, BYTES);
      AddedNode _ = above.graphs().graphAddNode(0, graph, new long[0], fill);
      long executable = above.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
      long again = address;
      for (int i = 0; i < 10_000 && (i == 0 || again != address); i++) {
        below.memory().memFree(0, again);
        again = above.memory().memAlloc(0, BYTES);
      }
      assertThat(again).isEqualTo(address);
      above.graphs().graphLaunch(0, executable, 0);
      assertThat(reports).isEmpty();
    }
  }
}

package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaDriverProvider;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.ref.WeakReference;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Java functions of nodes run once for each launch, for as long as there may be one. */
class FfmHostNodesTest extends StubDriverTest {
  private static final long OBJECT = 0x77;

  /** A child graph that has nodes with functions. */
  private static final long INNER = 0x1bed;

  private final AtomicInteger runs = new AtomicInteger();
  private final GraphNodeParams.Host host = new GraphNodeParams.Host(runs::incrementAndGet);
  private GraphCalls graphs;

  @BeforeEach
  void prepare() {
    graphs = driver.graphs();
    runs.set(0);
    library.answer(OBJECT, 0);
  }

  private void add() {
    graphs.graphAddNode(1, 0xabc, new long[] {0x11}, host);
  }

  /** Runs the function that the last node has. */
  private int run() {
    library.runHostNode();
    return runs.get();
  }

  /** What the driver does when all that could run the function is gone, and the graph's end. */
  private void end() {
    library.destroyUserObject();
    graphs.graphDestroy(0xabc);
  }

  @Test
  void functions_runInEachLaunch_untilNothingCanRunThem() {
    add();
    noted(
        "cuUserObjectCreate@11030(1, 1) in c001",
        "cuGraphRetainUserObject@11030(abc, 77, 1, 1) in c001",
        "cuGraphAddHostNode@10000(abc, {11}) in c001");
    assertThat(run()).isEqualTo(1);
    assertThat(run()).isEqualTo(2);
    graphs.graphDestroy(0xabc); // executables may be left
    assertThat(run()).isEqualTo(3);
    end();
    assertThat(run()).isEqualTo(3);
  }

  /** The driver may call it once more; that is no failure. */
  @Test
  void functionThatIsForgotten_isNotRun_andNothingIsSaid() throws ReflectiveOperationException {
    add();
    end();
    try (LogProbe log = new LogProbe("io.cuvette.ffm.part.HostFunctions")) {
      assertThat(run()).isZero();
      assertThat(log.told()).isEmpty();
    }
  }

  @Test
  void functions_areReadBack() {
    add();
    library.answer(GraphNodeType.HOST.ordinal(), 0);
    assertThat(graphs.graphNodeGetParams(0x100)).isEqualTo(host);
    end();
    assertThat(graphs.graphNodeGetParams(0x100))
        .isEqualTo(new GraphNodeParams.Other(GraphNodeType.HOST));
  }

  @Test
  void changedFunctions_liveAsLongAsTheOnesBefore() {
    add();
    AtomicInteger others = new AtomicInteger();
    library.reset();
    graphs.graphNodeSetParams(1, 0x100, new GraphNodeParams.Host(others::incrementAndGet));
    notedInAnyContext("cuGraphHostNodeGetParams@10000(100)", "cuGraphHostNodeSetParams@10000(100)");
    assertThat(run()).isZero();
    assertThat(others).hasValue(1);
    end();
    library.runHostNode();
    assertThat(others).hasValue(1);
    refused(CudaStatus.NOT_SUPPORTED, () -> graphs.graphNodeSetParams(1, 0x100, host));
  }

  @Test
  void functionsOfExecutables_liveAsLongAsThese() {
    add();
    AtomicInteger others = new AtomicInteger();
    graphs.graphExecNodeSetParams(
        1, 0x99, 0x100, new GraphNodeParams.Host(others::incrementAndGet));
    assertThat(callsInAnyContext())
        .endsWith(
            "cuGraphHostNodeGetParams@10000(100)", "cuGraphExecHostNodeSetParams@10020(99, 100)");
    end();
    library.runHostNode();
    assertThat(others).hasValue(1);
    graphs.graphExecDestroy(0x99);
    library.runHostNode();
    assertThat(others).hasValue(1);
  }

  @Test
  void functionsOfOtherChildGraphs_liveAsLongAsTheExecutable() {
    add();
    library.answer(GraphNodeType.HOST.ordinal(), 0); // as many nodes, all of this type
    graphs.graphExecNodeSetParams(1, 0x99, 0x100, new GraphNodeParams.Child(0xabc));
    assertThat(callsInAnyContext()).contains("cuGraphHostNodeGetParams@10000(66)");
    end();
    assertThat(run()).isEqualTo(1);
    graphs.graphExecDestroy(0x99);
    assertThat(run()).isEqualTo(1);
  }

  @Test
  void functionsOfGraphsInsideChildGraphs_liveAsLongAsTheExecutable() {
    add();
    library.answer(GraphNodeType.GRAPH.ordinal(), INNER); // as many nodes, all of this type
    graphs.graphExecNodeSetParams(1, 0x99, 0x100, new GraphNodeParams.Child(0xabc));
    end();
    assertThat(run()).isEqualTo(1);
    graphs.graphExecDestroy(0x99);
    assertThat(run()).isEqualTo(1);
  }

  /** An executable that ends is none of the others, whether it had functions or not. */
  @Test
  void endOfAnExecutableWithoutFunctions_endsNoneOfOthers() {
    add();
    graphs.graphExecNodeSetParams(1, 0x99, 0x100, host);
    end();
    graphs.graphExecDestroy(0x98);
    assertThat(run()).isEqualTo(1);
    graphs.graphExecDestroy(0x99);
    assertThat(run()).isEqualTo(1);
  }

  /** What the driver never got is free for the next: memory of signals is never given back. */
  @Test
  void signalOfAnObjectThatIsNotMade_isUsedByTheNext() throws Exception {
    Field free =
        driver
            .getClass()
            .getClassLoader()
            .loadClass("io.cuvette.ffm.part.Signal")
            .getDeclaredField("FREE");
    free.setAccessible(true);
    int before = ((Collection<?>) free.get(null)).size();
    library.fail("cuUserObjectCreate", 2);
    refused(CudaStatus.OUT_OF_MEMORY, this::add);
    assertThat((Collection<?>) free.get(null)).hasSize(Math.max(1, before));
  }

  @Test
  void nodesThatAreNotAdded_leaveNothing() {
    String[] calls = {"cuUserObjectCreate", "cuGraphRetainUserObject", "cuGraphAddHostNode"};
    String[] undone = {
      "cuUserObjectCreate@11030(1, 1) in c001",
      "cuUserObjectRelease@11030(77, 1) in c001",
      "cuGraphReleaseUserObject@11030(abc, 77, 1) in c001"
    };
    for (int i = 0; i < calls.length; i++) {
      library.reset();
      library.answer(OBJECT, 0);
      library.fail(calls[i], 2);
      refused(CudaStatus.OUT_OF_MEMORY, this::add);
      assertThat(library.calls()).last().isEqualTo(undone[i]);
      if (i > 0) {
        library.destroyUserObject(); // as its last reference is gone
      }
    }
    library.reset();
    add();
    library.fail("cuGraphHostNodeSetParams", 2);
    refused(CudaStatus.OUT_OF_MEMORY, () -> graphs.graphNodeSetParams(1, 0x100, host));
    library.fail("cuGraphExecHostNodeSetParams", 2);
    refused(CudaStatus.OUT_OF_MEMORY, () -> graphs.graphExecNodeSetParams(1, 0x99, 0x100, host));
    assertThat(run()).isEqualTo(1);
    end();
    assertThat(run()).isEqualTo(1);
  }

  /** Whatever is done next with graphs finds out that nothing runs a function any more. */
  @Test
  void functionThatNothingRuns_isForgottenByWhatComesNext() {
    List<Runnable> next =
        List.of(
            () -> graphs.graphDestroyNode(0x100),
            () -> graphs.graphDestroy(0xabc),
            () -> graphs.graphExecDestroy(0x99),
            () -> graphs.graphAddNode(1, 0xabd, new long[0], new GraphNodeParams.Host(() -> {})));
    for (Runnable each : next) {
      add();
      byte[] node = library.memory("host_node", 16).toArray(ValueLayout.JAVA_BYTE);
      library.destroyUserObject();
      each.run();
      library.memory("host_node", 16).copyFrom(MemorySegment.ofArray(node));
      assertThat(run()).isZero();
    }
    end();
  }

  /** What no node got may hold much of a program. */
  @Test
  void functionsThatNoNodeGot_areForgotten() {
    add();
    Map<String, Consumer<GraphNodeParams>> ways =
        Map.of(
            "cuGraphAddHostNode",
            params -> graphs.graphAddNode(1, 0xabd, new long[0], params),
            "cuGraphHostNodeSetParams",
            params -> graphs.graphNodeSetParams(1, 0x100, params),
            "cuGraphExecHostNodeSetParams",
            params -> graphs.graphExecNodeSetParams(1, 0x99, 0x100, params));
    List<WeakReference<byte[]>> all = new ArrayList<>();
    ways.forEach((function, way) -> {
      library.fail(function, 2);
      byte[] captured = new byte[8];
      all.add(new WeakReference<>(captured));
      refused(
          CudaStatus.OUT_OF_MEMORY,
          () -> way.accept(new GraphNodeParams.Host(() -> captured[0] = 1)));
    });
    for (int i = 0; i < 20 && all.stream().anyMatch(each -> each.get() != null); i++) {
      System.gc();
    }
    assertThat(all).allMatch(each -> each.get() == null);
    assertThat(run()).isEqualTo(1);
    end();
  }

  /** The driver has no graph for them, whatever it leaves where that would be. */
  @Test
  void functionsOfABrokenCapture_areNoneOfItsGraph() {
    library.answer(0, 0xabc);
    driver.streams().launchHostFunc(1, 0x5, runs::incrementAndGet);
    noted("cuStreamGetCaptureInfo@11030(5, 0, 0) in c001", "cuLaunchHostFunc@10000(5) in c001");
    awaitRuns(1);
  }

  @Test
  void capturedFunctions_runInEachLaunch() {
    library.answer(OBJECT, 0xabc); // a capture that is going on, of this graph
    driver.streams().launchHostFunc(1, 0x5, runs::incrementAndGet);
    noted(
        "cuStreamGetCaptureInfo@11030(5, 0, 0) in c001",
        "cuUserObjectCreate@11030(1, 1) in c001",
        "cuGraphRetainUserObject@11030(abc, 77, 1, 1) in c001",
        "cuLaunchHostFunc@10000(5) in c001");
    awaitRuns(1); // the library runs it at once
    library.runLaunchedFunction();
    library.runLaunchedFunction();
    assertThat(runs).hasValue(3);
    end();
    library.runLaunchedFunction();
    assertThat(runs).hasValue(3);
    library.fail("cuLaunchHostFunc", 2);
    library.answer(OBJECT, 0xabc);
    refused(
        CudaStatus.OUT_OF_MEMORY,
        () -> driver.streams().launchHostFunc(1, 0x5, runs::incrementAndGet));
    assertThat(library.calls())
        .last()
        .isEqualTo("cuGraphReleaseUserObject@11030(abc, 77, 1) in c001");
    library.destroyUserObject();
  }

  private void awaitRuns(int count) {
    while (runs.get() < count) {
      Thread.onSpinWait();
    }
  }

  private static void refused(CudaStatus status, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(CudaException.class, e -> assertThat(e.status()).isEqualTo(status));
  }

  @Test
  void functions_areForgottenWithTheirDriverAlone() {
    CudaDriverProvider provider = library.provider();
    try (CudaDriver mine = provider.open("")) {
      try (CudaDriver other = provider.open("")) {
        library.answer(OBJECT, 0);
        mine.graphs().graphAddNode(1, 0xabc, new long[0], host);
        assertThat(other.name()).isEqualTo(mine.name());
      }
      assertThat(run()).isEqualTo(1);
    }
    assertThat(run()).isEqualTo(1);
  }

  /** One driver is closed while a function of another is about to be launched. */
  @Test
  void functionThatWaits_isNotForgottenWithAnotherDriver() throws InterruptedException {
    CountDownLatch ran = new CountDownLatch(1);
    CudaDriverProvider provider = library.provider();
    try (CudaDriver mine = provider.open("")) {
      Thread launching;
      try (CudaDriver other = provider.open("")) {
        assertThat(other.name()).isEqualTo(mine.name());
        library.reset();
        library.hold("cuLaunchHostFunc");
        launching =
            Thread.ofPlatform().start(() -> mine.streams().launchHostFunc(1, 0x5, ran::countDown));
        while (launching.isAlive()
            && library.calls().stream().noneMatch(call -> call.startsWith("cuLaunchHostFunc"))) {
          Thread.onSpinWait();
        }
      } finally {
        library.hold("");
      }
      launching.join();
      assertThat(ran.await(30, TimeUnit.SECONDS)).as("it ran").isTrue();
    }
  }
}

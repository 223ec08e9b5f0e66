package io.cuvette.ffm;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaDriverProvider;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphConditionType;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is true of nodes of every kind, and of what other programs made them do. */
class GraphNodesTest extends StubDriverTest {
  private static final long NODE = 0x100;
  private static final LaunchShape SHAPE =
      new LaunchShape(2, 3, 4, 5, 6, 7, 1, 1, 1, 8, false, false);
  private static final LaunchShape CLUSTERS =
      new LaunchShape(2, 3, 4, 5, 6, 7, 2, 3, 1, 8, true, false);

  private GraphCalls graphs;

  @BeforeEach
  void prepare() {
    graphs = driver.graphs();
    library.memory("stub_attributes", 16 * 64).fill((byte) 0);
  }

  private static GraphNodeParams.Kernel kernel(LaunchShape shape) {
    return new GraphNodeParams.Kernel(
        0xc0de,
        shape,
        new LaunchParameters(
            Arena.ofAuto().allocate(8, 8),
            List.of(new KernelParameter(0, 4), new KernelParameter(4, 4))));
  }

  private static final List<GraphNodeParams> KINDS =
      List.of(
          kernel(SHAPE),
          kernel(CLUSTERS),
          new GraphNodeParams.Copy(0xab, 0xcd, 8),
          new GraphNodeParams.Fill(0xab, 7, 4, 8),
          new GraphNodeParams.Host(() -> {}),
          new GraphNodeParams.Empty(),
          new GraphNodeParams.EventRecord(6),
          new GraphNodeParams.EventWait(6),
          new GraphNodeParams.Child(9),
          new GraphNodeParams.Allocation(1, 64, List.of(0), 0),
          new GraphNodeParams.Free(0xab),
          new GraphNodeParams.Conditional(3, GraphConditionType.IF, 1));

  @Test
  void nodeThatIsAdded_isTheOneThatTheDriverGives() {
    for (GraphNodeParams params : KINDS) {
      assertThat(graphs.graphAddNode(1, 0xabc, new long[] {0x11}, params).node())
          .as("%s", params)
          .isEqualTo(NODE);
    }
  }

  /** One of them is enough for both attributes to be set. */
  @Test
  void kernelWithClustersOrCooperationAlone_hasItsAttributes() {
    LaunchShape clusters = new LaunchShape(2, 3, 4, 5, 6, 7, 2, 3, 1, 8, false, false);
    LaunchShape cooperative = new LaunchShape(2, 3, 4, 5, 6, 7, 1, 1, 1, 8, true, false);
    for (LaunchShape shape : List.of(clusters, cooperative, SHAPE)) {
      library.memory("stub_attributes", 16 * 64).fill((byte) 0);
      library.reset();
      graphs.graphAddNode(1, 0xabc, new long[0], kernel(shape));
      assertThat(attributes()).as("%s", shape).hasSize(shape.equals(SHAPE) ? 0 : 2);
      library.answer(GraphNodeType.KERNEL.ordinal(), 0);
      GraphNodeParams.Kernel read = (GraphNodeParams.Kernel) graphs.graphNodeGetParams(NODE);
      assertThat(read.shape()).isEqualTo(shape);
    }
  }

  @Test
  void nodeThatCannotBeRead_isAFailure() {
    Map<GraphNodeType, String> readers =
        Map.of(
            GraphNodeType.KERNEL, "cuGraphKernelNodeGetParams",
            GraphNodeType.MEMCPY, "cuGraphMemcpyNodeGetParams",
            GraphNodeType.MEMSET, "cuGraphMemsetNodeGetParams",
            GraphNodeType.HOST, "cuGraphHostNodeGetParams",
            GraphNodeType.GRAPH, "cuGraphChildGraphNodeGetGraph",
            GraphNodeType.WAIT_EVENT, "cuGraphEventWaitNodeGetEvent",
            GraphNodeType.EVENT_RECORD, "cuGraphEventRecordNodeGetEvent",
            GraphNodeType.MEM_ALLOC, "cuGraphMemAllocNodeGetParams",
            GraphNodeType.MEM_FREE, "cuGraphMemFreeNodeGetParams");
    graphs.graphAddNode(1, 0xabc, new long[0], kernel(SHAPE));
    readers.forEach((type, reader) -> {
      for (String function : List.of("cuGraphNodeGetType", reader)) {
        library.reset();
        library.answer(type.ordinal(), 0);
        library.fail(function, 400);
        refused(CudaStatus.INVALID_HANDLE, () -> graphs.graphNodeGetParams(NODE));
      }
    });
    library.reset();
    library.answer(GraphNodeType.KERNEL.ordinal(), 0);
    library.fail("cuGraphKernelNodeGetAttribute", 400);
    refused(CudaStatus.INVALID_HANDLE, () -> graphs.graphNodeGetParams(NODE));
  }

  private static void refused(CudaStatus status, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(CudaException.class, e -> assertThat(e.status()).isEqualTo(status));
  }

  /** The attributes that are set; they come before the parameters, and are set back alone. */
  private List<String> attributes() {
    return library.calls().stream()
        .filter(call -> call.startsWith("cuGraphKernelNodeSet"))
        .map(call -> call.replaceFirst("cuGraphKernelNodeSet(\\w+)@\\d+\\(100, ", "$1 "))
        .map(call -> call.replaceFirst("^(Params) .*", "$1").replaceFirst("\\) in .*", ""))
        .toList();
  }

  @Test
  void attributesOfKernels_areSetWhereTheyChange_andSetBackWhereTheParametersAreRefused() {
    graphs.graphAddNode(1, 0xabc, new long[0], kernel(SHAPE));
    library.reset();
    graphs.graphNodeSetParams(1, NODE, kernel(SHAPE));
    assertThat(attributes()).containsExactly("Params");
    library.reset();
    library.fail("cuGraphKernelNodeSetParams", 1);
    refused(CudaStatus.INVALID_VALUE, () -> graphs.graphNodeSetParams(1, NODE, kernel(SHAPE)));
    assertThat(attributes()).containsExactly("Params");
    library.reset();
    library.fail("cuGraphKernelNodeSetParams", 1);
    refused(CudaStatus.INVALID_VALUE, () -> graphs.graphNodeSetParams(1, NODE, kernel(CLUSTERS)));
    assertThat(attributes())
        .containsExactly(
            "Attribute 4, 2 3 1",
            "Attribute 2, 1 0 0",
            "Params",
            "Attribute 4, 1 1 1",
            "Attribute 2, 0 0 0");
    library.reset();
    graphs.graphNodeSetParams(1, NODE, kernel(CLUSTERS));
    assertThat(attributes()).containsExactly("Attribute 4, 2 3 1", "Attribute 2, 1 0 0", "Params");
  }

  @Test
  void attributesThatCannotBeSetBack_areAFailureBesideTheFirst() {
    graphs.graphAddNode(1, 0xabc, new long[0], kernel(SHAPE));
    library.fail("cuGraphKernelNodeSetAttribute@11000(100, 4, 1 1 1", 1);
    library.failToo("cuGraphKernelNodeSetParams");
    assertThatThrownBy(() -> graphs.graphNodeSetParams(1, NODE, kernel(CLUSTERS)))
        .isInstanceOf(CudaException.class)
        .hasMessageStartingWith("cuGraphKernelNodeSetParams(")
        .satisfies(e ->
            assertThat(e.getSuppressed())
                .singleElement()
                .satisfies(other ->
                    assertThat(other).hasMessageStartingWith("cuGraphKernelNodeSetAttribute(")));
  }

  /** As a program in C may have made it. */
  @Test
  void memoryThatIsNotOfADevice_isOfNoKindThatIsKnown() {
    graphs.graphAddNode(1, 0xabc, new long[0], new GraphNodeParams.Allocation(1, 64, List.of(), 0));
    MemorySegment location = library.memory("alloc_node", 16).asSlice(8, 8);
    library.answer(GraphNodeType.MEM_ALLOC.ordinal(), 0);
    for (int type : new int[] {0, 2, 3, 4}) {
      location.set(JAVA_INT, 0, type);
      location.set(JAVA_INT, 4, 40);
      assertThat(graphs.graphNodeGetParams(NODE))
          .isEqualTo(new GraphNodeParams.Other(GraphNodeType.MEM_ALLOC));
    }
    location.set(JAVA_INT, 0, 1);
    assertThat(graphs.graphNodeGetParams(NODE))
        .isEqualTo(new GraphNodeParams.Allocation(0, 64, List.of(), 0));
  }

  @Test
  void allPeersOfMemory_areThoseThatWereGiven(@TempDir Path folder) {
    StubLibrary three = StubLibrary.compile(folder);
    three.devices(4);
    try (CudaDriver other = three.open()) {
      for (List<Integer> peers : List.of(List.of(2, 3), List.of(3, 0), List.of(0))) {
        GraphNodeParams.Allocation params = new GraphNodeParams.Allocation(1, 64, peers, 0);
        three.reset();
        other.graphs().graphAddNode(1, 0xabc, new long[0], params);
        three.answer(GraphNodeType.MEM_ALLOC.ordinal(), 0);
        assertThat(other.graphs().graphNodeGetParams(NODE)).isEqualTo(params);
      }
    }
  }

  /** Of these only the type is told. */
  @Test
  void nodesThatAreNotRead_areOfTheirTypes() {
    for (GraphNodeType type :
        List.of(
            GraphNodeType.EXT_SEMAS_SIGNAL,
            GraphNodeType.EXT_SEMAS_WAIT,
            GraphNodeType.BATCH_MEM_OP,
            GraphNodeType.CONDITIONAL)) {
      library.answer(type.ordinal(), 0);
      assertThat(graphs.graphNodeGetParams(NODE)).isEqualTo(new GraphNodeParams.Other(type));
    }
  }

  /** A function of C may be given any number, also one that a Java function has. */
  @Test
  void functionOfC_isNoneOfJava() {
    AtomicInteger runs = new AtomicInteger();
    GraphNodeParams.Host host = new GraphNodeParams.Host(runs::incrementAndGet);
    library.answer(0x77, 0);
    graphs.graphAddNode(1, 0xabc, new long[0], host);
    MemorySegment node = library.memory("host_node", 16);
    long entry = node.get(JAVA_LONG, 0);
    node.set(JAVA_LONG, 0, library.address("stub_reset"));
    library.answer(GraphNodeType.HOST.ordinal(), 0);
    assertThat(graphs.graphNodeGetParams(NODE))
        .isEqualTo(new GraphNodeParams.Other(GraphNodeType.HOST));
    refused(CudaStatus.NOT_SUPPORTED, () -> graphs.graphNodeSetParams(1, NODE, host));
    refused(CudaStatus.NOT_SUPPORTED, () -> graphs.graphExecNodeSetParams(1, 0x99, NODE, host));
    assertThatThrownBy(() -> graphs.graphNodeSetParams(1, NODE, host))
        .hasMessageContaining("cuGraphHostNodeSetParams(node=0x100)");
    graphs.graphExecNodeSetParams(1, 0x99, NODE, new GraphNodeParams.Child(0xabd));
    assertThat(callsInAnyContext()).contains("cuGraphHostNodeGetParams@10000(64)");
    node.set(JAVA_LONG, 0, entry);
    library.runHostNode();
    assertThat(runs).hasValue(1);
    library.destroyUserObject();
    graphs.graphDestroy(0xabc);
    library.runHostNode();
    assertThat(runs).as("not kept by an executable of C alone").hasValue(1);
  }

  /** Another driver that is closed takes its own functions alone. */
  @Test
  void functionOfAnExecutable_endsWithIt_alsoIfAnotherDriverIsClosedMeanwhile() {
    AtomicInteger runs = new AtomicInteger();
    CudaDriverProvider provider = library.provider();
    try (CudaDriver mine = provider.open("")) {
      library.answer(0x77, 0);
      mine.graphs().graphAddNode(1, 0xabc, new long[0], new GraphNodeParams.Host(() -> {}));
      GraphNodeParams.Host host = new GraphNodeParams.Host(runs::incrementAndGet);
      mine.graphs().graphExecNodeSetParams(1, 0x99, NODE, host);
      provider.open("").close();
      library.destroyUserObject();
      mine.graphs().graphDestroy(0xabc);
      library.runHostNode();
      assertThat(runs).hasValue(1);
      mine.graphs().graphExecDestroy(0x99);
      library.runHostNode();
      assertThat(runs).hasValue(1);
    }
  }

  /** A stream whose capture is over, or invalid, may still say a graph. */
  @Test
  void functionOfAStreamThatIsNotCaptured_isOfNoGraph() throws InterruptedException {
    AtomicInteger runs = new AtomicInteger();
    library.answer(0, 0xabc);
    driver.streams().launchHostFunc(1, 0x5, runs::incrementAndGet);
    noted("cuStreamGetCaptureInfo@11030(5, 0, 0) in c001", "cuLaunchHostFunc@10000(5) in c001");
    while (runs.get() == 0) {
      Thread.sleep(1);
    }
    library.runLaunchedFunction();
    assertThat(runs).hasValue(1);
  }

  @Test
  void nodesWithoutParameters_areRefused_beforeTheDriverIsAsked() {
    library.reset();
    List<ThrowingCallable> all =
        List.of(
            () -> graphs.graphAddNode(1, 0xabc, new long[0], null),
            () -> graphs.graphNodeSetParams(1, NODE, null),
            () -> graphs.graphExecNodeSetParams(1, 0x99, NODE, null));
    assertThat(all)
        .allSatisfy(
            each -> assertThatThrownBy(each).isExactlyInstanceOf(NullPointerException.class));
    assertThat(library.calls()).isEmpty();
  }
}

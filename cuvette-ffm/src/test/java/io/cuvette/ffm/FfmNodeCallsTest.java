package io.cuvette.ffm;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.CudaDriver;
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
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Nodes of graphs and what they do: each field of the structures, there and back. */
class FfmNodeCallsTest extends StubDriverTest {
  private static final long KERNEL = 0xc0de;
  private static final LaunchShape SHAPE =
      new LaunchShape(2, 3, 4, 5, 6, 7, 1, 1, 1, 8, false, false);
  private static final LaunchShape CLUSTERS =
      new LaunchShape(2, 3, 4, 5, 6, 7, 2, 3, 1, 8, true, false);
  private static final GraphNodeParams.Copy COPY =
      new GraphNodeParams.Copy(0x7f0000000010L, 0x7f0000000020L, 1L << 33);
  private static final GraphNodeParams.Fill FILL =
      new GraphNodeParams.Fill(0x7f0000000010L, 0x89abcdef, 4, 1L << 33);

  private GraphCalls graphs;

  @BeforeEach
  void prepare() {
    graphs = driver.graphs();
    library.memory("stub_attributes", 16 * 64).fill((byte) 0);
  }

  private static GraphNodeParams.Kernel kernel(LaunchShape shape, int first, int second) {
    MemorySegment values = Arena.ofAuto().allocate(8, 8);
    values.set(JAVA_INT, 0, first);
    values.set(JAVA_INT, 4, second);
    return new GraphNodeParams.Kernel(
        KERNEL,
        shape,
        new LaunchParameters(
            values, List.of(new KernelParameter(0, 4), new KernelParameter(4, 4))));
  }

  private AddedNode add(GraphNodeParams params) {
    return graphs.graphAddNode(1, 0xabc, new long[] {0x11, 0x12}, params);
  }

  private GraphNodeParams read(GraphNodeType type, long answer) {
    library.answer(type.ordinal(), answer);
    return graphs.graphNodeGetParams(0x100);
  }

  @Test
  void kernels_haveTheirParameters() {
    assertThat(add(kernel(SHAPE, 13, 14))).isEqualTo(AddedNode.plain(0x100));
    noted(
        "cuGraphAddKernelNode@12000(abc, {11 12}, {0, 2 3 4, 5 6 7, 8, 13 14, 0, c0de, c001})"
            + " in c001");
    GraphNodeParams.Kernel read = (GraphNodeParams.Kernel) read(GraphNodeType.KERNEL, 0);
    assertThat(read.kernel()).isEqualTo(KERNEL);
    assertThat(read.shape()).isEqualTo(SHAPE);
    assertThat(read.parameters().places())
        .containsExactly(new KernelParameter(0, 4), new KernelParameter(4, 4));
    assertThat(read.parameters().values().toArray(JAVA_INT)).containsExactly(13, 14);
    library.reset();
    graphs.graphNodeSetParams(1, 0x100, kernel(SHAPE, 15, 16));
    graphs.graphExecNodeSetParams(1, 0x99, 0x100, kernel(SHAPE, 17, 18));
    assertThat(library.calls())
        .contains(
            "cuGraphKernelNodeSetParams@12000(100,"
                + " {0, 2 3 4, 5 6 7, 8, 15 16, 0, c0de, c001}) in c001",
            "cuGraphExecKernelNodeSetParams@12000(99, 100,"
                + " {0, 2 3 4, 5 6 7, 8, 17 18, 0, c0de, c001}) in c001");
  }

  @Test
  void kernelsWithoutParameters_haveNone() {
    LaunchParameters none = new LaunchParameters(Arena.ofAuto().allocate(1), List.of());
    add(new GraphNodeParams.Kernel(KERNEL, SHAPE, none));
    GraphNodeParams.Kernel read = (GraphNodeParams.Kernel) read(GraphNodeType.KERNEL, 0);
    assertThat(read.parameters().places()).isEmpty();
  }

  @Test
  void clustersAndCooperation_areAttributes() {
    add(kernel(CLUSTERS, 13, 14));
    assertThat(library.calls())
        .endsWith(
            "cuGraphKernelNodeSetAttribute@11000(100, 4, 2 3 1) in c001",
            "cuGraphKernelNodeSetAttribute@11000(100, 2, 1 0 0) in c001");
    assertThat(((GraphNodeParams.Kernel) read(GraphNodeType.KERNEL, 0)).shape())
        .isEqualTo(CLUSTERS);
    library.reset();
    graphs.graphNodeSetParams(1, 0x100, kernel(CLUSTERS, 1, 2));
    graphs.graphExecNodeSetParams(1, 0x99, 0x100, kernel(CLUSTERS, 1, 2));
    assertThat(library.calls()).noneMatch(call -> call.contains("SetAttribute"));
    refused(
        CudaStatus.NOT_SUPPORTED,
        "clusters and cooperation",
        () -> graphs.graphExecNodeSetParams(1, 0x99, 0x100, kernel(SHAPE, 1, 2)));
    for (LaunchShape other :
        List.of( // each differs in one
            new LaunchShape(2, 3, 4, 5, 6, 7, 2, 3, 1, 8, false, false),
            new LaunchShape(2, 3, 4, 5, 6, 7, 1, 3, 1, 8, true, false),
            new LaunchShape(2, 3, 4, 5, 6, 7, 2, 1, 1, 8, true, false),
            new LaunchShape(2, 3, 4, 5, 6, 7, 2, 3, 2, 8, true, false))) {
      refused(
          CudaStatus.NOT_SUPPORTED,
          "cooperation",
          () -> graphs.graphExecNodeSetParams(1, 0x99, 0x100, kernel(other, 1, 2)));
    }
    graphs.graphNodeSetParams(1, 0x100, kernel(SHAPE, 1, 2));
    assertThat(library.calls())
        .contains(
            "cuGraphKernelNodeSetAttribute@11000(100, 4, 1 1 1) in c001",
            "cuGraphKernelNodeSetAttribute@11000(100, 2, 0 0 0) in c001");
    library.fail("cuGraphKernelNodeSetParams", 1);
    refused(
        CudaStatus.INVALID_VALUE,
        "cuGraphKernelNodeSetParams(node=0x100",
        () -> graphs.graphNodeSetParams(1, 0x100, kernel(CLUSTERS, 1, 2)));
    library.reset();
    assertThat(((GraphNodeParams.Kernel) read(GraphNodeType.KERNEL, 0)).shape()).isEqualTo(SHAPE);
  }

  @Test
  void kernelThatCannotHaveItsAttributes_isNoNode() {
    library.fail("cuGraphKernelNodeSetAttribute", 1);
    refused(
        CudaStatus.INVALID_VALUE,
        "cuGraphKernelNodeSetAttribute(node=0x100, attribute=4, device=1)",
        () -> add(kernel(CLUSTERS, 13, 14)));
    assertThat(library.calls()).last().asString().startsWith("cuGraphDestroyNode@10000(100)");
    library.reset();
    LaunchShape programmatic = new LaunchShape(2, 3, 4, 5, 6, 7, 1, 1, 1, 8, false, true);
    refused(CudaStatus.NOT_SUPPORTED, "programmatic", () -> add(kernel(programmatic, 13, 14)));
    assertThat(library.calls()).isEmpty();
  }

  @Test
  void kernelOfAContext_staysOne() {
    add(kernel(SHAPE, 13, 14));
    MemorySegment node = library.memory("kernel_node_seen", 72);
    node.set(JAVA_LONG, 0, 0xf00);
    node.set(JAVA_LONG, 56, 0);
    GraphNodeParams.Kernel read = (GraphNodeParams.Kernel) read(GraphNodeType.KERNEL, 0);
    assertThat(read.kernel()).isEqualTo(0xf00);
    assertThat(read.parameters().values().toArray(JAVA_INT)).containsExactly(13, 14);
    library.reset();
    add(read);
    noted(
        "cuGraphAddKernelNode@12000(abc, {11 12}, {f00, 2 3 4, 5 6 7, 8, 13 14, 0, 0, c001})"
            + " in c001");
  }

  @Test
  void priorities() {
    graphs.graphKernelNodeSetPriority(0x100, -5);
    assertThat(graphs.graphKernelNodeGetPriority(0x100)).isEqualTo(-5);
    notedInAnyContext(
        "cuGraphKernelNodeSetAttribute@11000(100, 8, -5 0 0)",
        "cuGraphKernelNodeGetAttribute@11000(100, 8)");
  }

  @Test
  void copies() {
    String made = "{4 7f0000000010, 4 7f0000000020, 8589934592 1 1, 0}";
    add(COPY);
    graphs.graphNodeSetParams(1, 0x100, COPY);
    graphs.graphExecNodeSetParams(1, 0x99, 0x100, COPY);
    noted(
        "cuGraphAddMemcpyNode@10000(abc, {11 12}, " + made + ", c001) in c001",
        "cuGraphMemcpyNodeSetParams@10000(100, " + made + ") in c001",
        "cuGraphExecMemcpyNodeSetParams@10020(99, 100, " + made + ", c001) in c001");
    assertThat(read(GraphNodeType.MEMCPY, 0)).isEqualTo(COPY);
  }

  /** Offsets in a row, rows and layers of host memory, and what is no copy of one row. */
  @Test
  void copiesOfOthers_areRead() {
    add(COPY);
    MemorySegment copy = library.memory("copy_node_seen", 200);
    ValueLayout.OfLong number = JAVA_LONG;
    copy.set(JAVA_INT, 32, 1); // srcMemoryType host
    copy.set(number, 40, 0x5000); // srcHost
    copy.set(number, 0, 3); // srcXInBytes
    copy.set(number, 8, 2); // srcY
    copy.set(number, 16, 1); // srcZ
    copy.set(number, 72, 0x100); // srcPitch
    copy.set(number, 80, 4); // srcHeight
    copy.set(number, 88, 7); // dstXInBytes
    assertThat(read(GraphNodeType.MEMCPY, 0))
        .isEqualTo(new GraphNodeParams.Copy(COPY.target() + 7, 0x5603, COPY.bytes()));
    copy.set(number, 184, 2); // Height
    assertThat(read(GraphNodeType.MEMCPY, 0))
        .isEqualTo(new GraphNodeParams.Other(GraphNodeType.MEMCPY));
    copy.set(number, 184, 1);
    copy.set(number, 192, 2); // Depth
    assertThat(read(GraphNodeType.MEMCPY, 0))
        .isEqualTo(new GraphNodeParams.Other(GraphNodeType.MEMCPY));
    copy.set(number, 192, 1);
    copy.set(JAVA_INT, 120, 3); // dstMemoryType array
    assertThat(read(GraphNodeType.MEMCPY, 0))
        .isEqualTo(new GraphNodeParams.Other(GraphNodeType.MEMCPY));
  }

  @Test
  void fills() {
    String made = "{7f0000000010, 0, 89abcdef, 4, 8589934592, 1}";
    add(FILL);
    graphs.graphNodeSetParams(1, 0x100, FILL);
    graphs.graphExecNodeSetParams(1, 0x99, 0x100, FILL);
    noted(
        "cuGraphAddMemsetNode@10000(abc, {11 12}, " + made + ", c001) in c001",
        "cuGraphMemsetNodeSetParams@10000(100, " + made + ") in c001",
        "cuGraphExecMemsetNodeSetParams@10020(99, 100, " + made + ", c001) in c001");
    assertThat(read(GraphNodeType.MEMSET, 0)).isEqualTo(FILL);
    library.reset();
    add(new GraphNodeParams.Fill(0x10, -1, 1, 5));
    add(new GraphNodeParams.Fill(0x10, -1, 2, 5));
    assertThat(library.calls())
        .satisfiesExactly(
            call -> assertThat(call).contains("{10, 0, ff, 1, 5, 1}"),
            call -> assertThat(call).contains("{10, 0, ffff, 2, 5, 1}"));
  }

  /** Others make them: this library has fills of one row alone. */
  @Test
  void fillOfSeveralRows_isNoneThatThisLibraryMakes() {
    add(FILL);
    MemorySegment made = library.memory("fill_node", 40);
    assertThat(made.get(ValueLayout.JAVA_LONG, 32)).as("the height").isOne();
    made.set(ValueLayout.JAVA_LONG, 32, 2);
    assertThat(read(GraphNodeType.MEMSET, 0))
        .isEqualTo(new GraphNodeParams.Other(GraphNodeType.MEMSET));
  }

  @Test
  void emptyNodesAndEvents() {
    add(new GraphNodeParams.Empty());
    graphs.graphAddNode(1, 0xabc, new long[0], new GraphNodeParams.Empty());
    add(new GraphNodeParams.EventRecord(0x7));
    add(new GraphNodeParams.EventWait(0x8));
    graphs.graphNodeSetParams(1, 0x100, new GraphNodeParams.EventRecord(0x7));
    graphs.graphNodeSetParams(1, 0x100, new GraphNodeParams.EventWait(0x8));
    graphs.graphExecNodeSetParams(1, 0x99, 0x100, new GraphNodeParams.EventRecord(0x7));
    graphs.graphExecNodeSetParams(1, 0x99, 0x100, new GraphNodeParams.EventWait(0x8));
    noted(
        "cuGraphAddEmptyNode@10000(abc, {11 12}) in c001",
        "cuGraphAddEmptyNode@10000(abc, {}) in c001",
        "cuGraphAddEventRecordNode@11010(abc, {11 12}, 7) in c001",
        "cuGraphAddEventWaitNode@11010(abc, {11 12}, 8) in c001",
        "cuGraphEventRecordNodeSetEvent@11010(100, 7) in c001",
        "cuGraphEventWaitNodeSetEvent@11010(100, 8) in c001",
        "cuGraphExecEventRecordNodeSetEvent@11010(99, 100, 7) in c001",
        "cuGraphExecEventWaitNodeSetEvent@11010(99, 100, 8) in c001");
    assertThat(read(GraphNodeType.EMPTY, 0)).isEqualTo(new GraphNodeParams.Empty());
    assertThat(read(GraphNodeType.EVENT_RECORD, 0x9))
        .isEqualTo(new GraphNodeParams.EventRecord(0x9));
    assertThat(read(GraphNodeType.WAIT_EVENT, 0xa)).isEqualTo(new GraphNodeParams.EventWait(0xa));
  }

  @Test
  void childGraphs() {
    add(new GraphNodeParams.Child(0xdef));
    graphs.graphExecNodeSetParams(1, 0x99, 0x100, new GraphNodeParams.Child(0xdee));
    noted(
        "cuGraphAddChildGraphNode@10000(abc, {11 12}, def) in c001",
        "cuGraphExecChildGraphNodeSetParams@11010(99, 100, dee) in c001");
    assertThat(read(GraphNodeType.GRAPH, 0xded)).isEqualTo(new GraphNodeParams.Child(0xded));
  }

  @Test
  void memory() {
    library.answer(0x7f00, 0);
    GraphNodeParams.Allocation alone = new GraphNodeParams.Allocation(1, 1L << 33, List.of(), 0);
    assertThat(add(alone)).isEqualTo(new AddedNode(0x100, 0x7f00, List.of()));
    assertThat(read(GraphNodeType.MEM_ALLOC, 0))
        .isEqualTo(new GraphNodeParams.Allocation(1, 1L << 33, List.of(), 0x7f00));
    library.answer(0x7f01, 0);
    add(new GraphNodeParams.Allocation(0, 5, List.of(1), 0));
    assertThat(read(GraphNodeType.MEM_ALLOC, 0))
        .isEqualTo(new GraphNodeParams.Allocation(0, 5, List.of(1), 0x7f01));
    add(new GraphNodeParams.Free(0x7f00));
    assertThat(read(GraphNodeType.MEM_FREE, 0x7f02)).isEqualTo(new GraphNodeParams.Free(0x7f02));
    assertThat(library.calls().stream().filter(call -> call.startsWith("cuGraphAdd")))
        .containsExactly(
            "cuGraphAddMemAllocNode@11040(abc, {11 12}, {1, 0, 1:41, 0, 0, 0}, {}, 8589934592, 0)"
                + " in c001",
            "cuGraphAddMemAllocNode@11040(abc, {11 12}, {1, 0, 1:40, 0, 0, 0}, { 1:41=3}, 5, 0)"
                + " in c001",
            "cuGraphAddMemFreeNode@11040(abc, {11 12}, 7f00) in c001");
  }

  @Test
  void conditions_haveBodies() {
    assertThat(add(new GraphNodeParams.Conditional(0xfeedL << 40, GraphConditionType.SWITCH, 3)))
        .isEqualTo(new AddedNode(0x100, 0, List.of(0xb0d1L, 0xb0d2L, 0xb0d3L)));
    assertThat(add(new GraphNodeParams.Conditional(1, GraphConditionType.IF, 1)).bodies())
        .containsExactly(0xb0d1L);
    add(new GraphNodeParams.Conditional(1, GraphConditionType.WHILE, 1));
    noted(
        "cuGraphAddNode@12030(abc, {11 12}, 0, 13, {feed0000000000, 2, 3, c001}, 0) in c001",
        "cuGraphAddNode@12030(abc, {11 12}, 0, 13, {1, 0, 1, c001}, 0) in c001",
        "cuGraphAddNode@12030(abc, {11 12}, 0, 13, {1, 1, 1, c001}, 0) in c001");
    assertThat(read(GraphNodeType.CONDITIONAL, 0))
        .isEqualTo(new GraphNodeParams.Other(GraphNodeType.CONDITIONAL));
  }

  @Test
  void whatCannotBeMade_isRefused_beforeTheDriver() {
    GraphNodeParams other = new GraphNodeParams.Other(GraphNodeType.BATCH_MEM_OP);
    GraphNodeParams allocation = new GraphNodeParams.Allocation(1, 64, List.of(), 0);
    refused(CudaStatus.INVALID_VALUE, "BATCH_MEM_OP", () -> add(other));
    refused(
        CudaStatus.INVALID_VALUE,
        "MEM_ALLOC",
        () -> graphs.graphNodeSetParams(1, 0x100, allocation));
    refused(
        CudaStatus.INVALID_VALUE,
        "MEM_ALLOC",
        () -> graphs.graphExecNodeSetParams(1, 0x99, 0x100, allocation));
    refused(
        CudaStatus.INVALID_DEVICE,
        "cuDeviceGet(ordinal=2)",
        () -> add(new GraphNodeParams.Allocation(1, 64, List.of(2), 0)));
    assertThat(library.calls()).isEmpty();
  }

  @Test
  void failures_nameTheCall() {
    for (GraphNodeParams params :
        List.of(
            kernel(SHAPE, 1, 2),
            COPY,
            FILL,
            new GraphNodeParams.Empty(),
            new GraphNodeParams.EventRecord(7),
            new GraphNodeParams.EventWait(7),
            new GraphNodeParams.Child(7),
            new GraphNodeParams.Free(7),
            new GraphNodeParams.Allocation(1, 64, List.of(), 0),
            new GraphNodeParams.Conditional(1, GraphConditionType.IF, 2))) {
      library.reset();
      add(params);
      String function = library.calls().getFirst().replaceFirst("@.*", "");
      library.fail(function, 1);
      refused(
          CudaStatus.INVALID_VALUE,
          function + "(graph=0xabc, dependencies=2, " + params.getClass().getSimpleName(),
          () -> add(params));
    }
  }

  /** Only INVALID_VALUE says that a parameter is behind the last one. */
  @Test
  void parametersThatTheDriverDoesNotTell_areAFailure() {
    add(kernel(SHAPE, 1, 2));
    library.fail("cuKernelGetParamInfo", 400);
    refused(
        CudaStatus.INVALID_HANDLE,
        "cuKernelGetParamInfo(kernel=0xc0de, index=0)",
        () -> read(GraphNodeType.KERNEL, 0));
  }

  /** One before CUDA 12.4 tells of none. */
  @Test
  void parametersThatTheDriverCannotTell_areNone(@TempDir Path folder) {
    for (String function : List.of("cuKernelGetParamInfo", "cuFuncGetParamInfo")) {
      StubLibrary old = StubLibrary.compile(folder.resolve(function));
      old.hide(function);
      try (CudaDriver without = old.open()) {
        without.graphs().graphAddNode(1, 0xabc, new long[0], kernel(SHAPE, 13, 14));
        old.answer(GraphNodeType.KERNEL.ordinal(), 0);
        GraphNodeParams.Kernel read =
            (GraphNodeParams.Kernel) without.graphs().graphNodeGetParams(0x100);
        assertThat(read.shape()).isEqualTo(SHAPE);
        assertThat(read.parameters().places()).isEmpty();
      }
    }
  }

  @Test
  void capturesIntoGraphs() {
    driver.captures().streamBeginCaptureToGraph(1, 0x5, 0xabc, new long[] {0x11, 0x12}, 2);
    driver.captures().streamUpdateCaptureDependencies(1, 0x5, new long[] {0x13});
    driver.captures().streamUpdateCaptureDependencies(1, 0x5, new long[0]);
    library.answer(1, 2);
    assertThat(driver.captures().streamGetCaptureDependencies(1, 0x5)).containsExactly(100, 101);
    library.answer(0, 2);
    assertThat(driver.captures().streamGetCaptureDependencies(1, 0x5)).isEmpty();
    library.answer(1, 0);
    assertThat(driver.captures().streamGetCaptureDependencies(1, 0x5)).isEmpty();
    noted(
        "cuStreamBeginCaptureToGraph@12030(5, abc, {11 12}, 0, 2) in c001",
        "cuStreamUpdateCaptureDependencies@12030(5, {13}, 0, 1) in c001",
        "cuStreamUpdateCaptureDependencies@12030(5, {}, 0, 1) in c001",
        "cuStreamGetCaptureInfo@12030(5, 0, 0) in c001",
        "cuStreamGetCaptureInfo@12030(5, 0, 0) in c001",
        "cuStreamGetCaptureInfo@12030(5, 0, 0) in c001");
  }

  private static void refused(CudaStatus status, String text, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(CudaException.class, e -> assertThat(e.status()).isEqualTo(status))
        .hasMessageContaining(text);
  }
}

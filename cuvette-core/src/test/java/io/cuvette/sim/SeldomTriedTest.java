package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphConditionType;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.driver.InstantiatedGraph;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.driver.MatrixType;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PoolProperties;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import org.assertj.core.data.Percentage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What programs seldom do, and seldom rightly: each is refused, or does what CUDA does. */
class SeldomTriedTest extends SimTestBase {
  private static final CudaStatus INVALID = CudaStatus.INVALID_VALUE;
  private static final long PAGE = 2 * MIB;
  private static final int FROM_DEVICES = 4;

  private final long stream = stream(0);
  private final long graph = driver.graphs().graphCreate();
  private final long memory = driver.memory().memAlloc(0, 64);

  private AddedNode added(long to, GraphNodeParams params) {
    return driver.graphs().graphAddNode(0, to, new long[0], params);
  }

  private GraphNodeParams fill() {
    return new GraphNodeParams.Fill(memory, 1, 1, 8);
  }

  private long instantiated(long from) {
    return driver.graphs().graphInstantiateWithParams(0, from, 0, 0).executable();
  }

  private void launch(long executable) {
    driver.graphs().graphLaunch(0, executable, stream);
    driver.streams().streamSynchronize(0, stream);
  }

  private static LaunchShape shape(int x, int y, int z, int shared, boolean cooperative) {
    return new LaunchShape(x, y, z, 1, 1, 1, 1, 1, 1, shared, cooperative, false);
  }

  /** Launches it on a device, and waits. */
  private void run(int device, LaunchShape shape, KernelFunction function) {
    SimulatedKernel kernel = SimulatedKernel.of("seldomTried", function);
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(kernel)) {
      long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(kernel)));
      long found = driver.kernels().libraryGetKernel(library, kernel.name());
      LaunchParameters none = new LaunchParameters(MemorySegment.NULL, List.of());
      driver.kernels().launchKernel(device, 0, found, shape, none);
      driver.streams().streamSynchronize(device, 0);
    }
  }

  private void loseSecondDevice() {
    assertFails(
        CudaStatus.ILLEGAL_ADDRESS,
        "any memory",
        () -> run(1, shape(1, 1, 1, 0, false), t -> t.setInt(8, 1)));
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 3, 8})
  void nodeThatFills_hasElementsOf1_2_or4Bytes(int unit) {
    GraphNodeParams params = new GraphNodeParams.Fill(memory, 1, unit, 2);
    assertFails(INVALID, "elementBytes: " + unit, () -> added(graph, params));
    assertThat(driver.graphs().graphGetNodes(graph)).isEmpty();
  }

  @Test
  void conditionThatIsNotSetAtLaunches_isZeroAtFirst() {
    write(memory, (byte) 7);
    for (boolean assigns : new boolean[] {false, true}) {
      long of = driver.graphs().graphCreate();
      long condition = driver.graphs().graphConditionalHandleCreate(0, of, 1, assigns);
      AddedNode node =
          added(of, new GraphNodeParams.Conditional(condition, GraphConditionType.IF, 1));
      AddedNode _ = added(node.bodies().getFirst(), fill());
      launch(instantiated(of));
      assertThat(read(memory, 1)).containsExactly(assigns ? 1 : 7);
    }
  }

  @Test
  void parametersThatAreNotKnown_changeNoNode() {
    AddedNode node = added(graph, fill());
    GraphNodeParams other = new GraphNodeParams.Other(GraphNodeType.MEMSET);
    assertFails(INVALID, "", () -> driver.graphs().graphNodeSetParams(0, node.node(), other));
    long executable = instantiated(graph);
    assertFails(
        INVALID,
        "",
        () -> driver.graphs().graphExecNodeSetParams(0, executable, node.node(), other));
  }

  @Test
  void graphWithoutWorkOfADevice_isRefusedForItsNode_ifThatCannotBeLaunchedThere() {
    long event = driver.events().eventCreate(0, 2);
    for (GraphNodeParams params :
        List.of(new GraphNodeParams.Empty(), new GraphNodeParams.EventRecord(event))) {
      long of = driver.graphs().graphCreate();
      long node = added(of, params).node();
      InstantiatedGraph made = driver.graphs().graphInstantiateWithParams(0, of, FROM_DEVICES, 0);
      assertThat(made.result()).isNotZero();
      assertThat(made.errorNode()).isEqualTo(node);
    }
  }

  @Test
  void graphThatFreesWhatAnotherAllocates_isLaunchedBehindThat() {
    AddedNode made = added(graph, new GraphNodeParams.Allocation(0, 64, List.of(), 0));
    long frees = driver.graphs().graphCreate();
    AddedNode _ = added(frees, new GraphNodeParams.Free(made.address()));
    long allocating = instantiated(graph);
    long freeing = instantiated(frees);
    assertFails(INVALID, "is not allocated", () -> launch(freeing));
    for (int i = 0; i < 2; i++) {
      launch(allocating);
      launch(freeing);
      assertFails(INVALID, "is not allocated", () -> launch(freeing));
    }
  }

  @Test
  void report_hasNoGraphsThatAreInside_andNoMemoryThatIsNotAllocated() {
    long before = driver.report().lines().count();
    AddedNode made = added(graph, new GraphNodeParams.Allocation(0, 64, List.of(), 0));
    long outer = driver.graphs().graphCreate();
    long inner = driver.graphs().graphCreate();
    AddedNode _ = added(inner, fill());
    AddedNode _ = added(outer, new GraphNodeParams.Child(inner));
    assertThat(driver.report().lines().count()).isEqualTo(before + 2);
    launch(instantiated(graph));
    assertThat(driver.report().lines().count()).isEqualTo(before + 4);
    driver.ordered().memFreeAsync(0, made.address(), stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(driver.report().lines().count()).isEqualTo(before + 3);
  }

  @ParameterizedTest
  @CsvSource({"60000, 1, 1", "1, 60000, 1", "1, 1, 60000", "40, 40, 40"})
  void cooperativeGrid_isResident_inEachDimension(int x, int y, int z) {
    assertFails(
        CudaStatus.COOPERATIVE_LAUNCH_TOO_LARGE,
        "which can be resident at once",
        () -> run(0, shape(x, y, z, 0, true), _ -> {}));
  }

  @Test
  void sharedMemory_isNotNegative() {
    assertFails(
        INVALID,
        "dynamic shared memory: -1 bytes",
        () -> run(0, shape(1, 1, 1, -1, false), _ -> {}));
  }

  @Test
  void kernelThatUsesFreedMemory_isToldSo() {
    long freed = driver.memory().memAlloc(0, 4 * MIB);
    driver.memory().memFree(0, freed);
    assertFails(
        CudaStatus.ILLEGAL_ADDRESS,
        "it was freed",
        () -> run(0, shape(1, 1, 1, 0, false), t -> t.setInt(freed, 1)));
  }

  private void map(long address, byte content) {
    long handle =
        driver.virtual().memCreate(PAGE, AllocationProperties.ofDevice(0, MemHandleType.NONE));
    driver.virtual().memMap(address, PAGE, 0, handle);
    driver.virtual().memRelease(handle);
    access(address, MemAccessFlags.READ_WRITE);
    driver.transfers().memsetD8Async(0, address, content, PAGE, 0);
    driver.streams().streamSynchronize(0, 0);
  }

  private void access(long address, int access) {
    int[] first = {0};
    driver.virtual().memSetAccess(address, PAGE, MemLocationType.DEVICE, first, access);
  }

  @Test
  void kernelThatGoesOnToTheNextMapping_needsAccessToThatToo() {
    long range = driver.virtual().memAddressReserve(2 * PAGE, 0, 0);
    map(range, (byte) 1);
    map(range + PAGE, (byte) 2);
    KernelFunction both = t -> t.setInt(range, t.getInt(range + PAGE - 4) + t.getInt(range + PAGE));
    run(0, shape(1, 1, 1, 0, false), both);
    assertThat(read(range, 1)).containsExactly(3);
    access(range + PAGE, MemAccessFlags.NONE);
    assertFails(CudaStatus.ILLEGAL_ADDRESS, "", () -> run(0, shape(1, 1, 1, 0, false), both));
  }

  @Test
  void memoryThatWasUnmapped_isNotThere_untilOtherIsMapped() {
    long range = driver.virtual().memAddressReserve(2 * PAGE, 0, 0);
    map(range, (byte) 1);
    map(range + PAGE, (byte) 2);
    assertThat(read(range + PAGE - 1, 2)).containsExactly(1, 2);
    driver.virtual().memUnmap(range + PAGE, PAGE);
    assertFails(INVALID, "", () -> read(range + PAGE - 1, 2));
    assertFails(INVALID, "", () -> driver.memory().pointerGetAttribute(0, 7, range + PAGE));
    driver.virtual().memUnmap(range, PAGE);
    assertFails(INVALID, "", () -> read(range, 1));
    map(range, (byte) 4);
    assertThat(read(range, 1)).containsExactly(4);
  }

  @Test
  void decompression_isForPlainMemoryOfADevice() {
    MemorySegment host = driver.memory().memHostAlloc(0, 64, 0);
    long pooled = driver.ordered().memAllocAsync(0, 64, stream);
    assertThat(driver.memory().pointerGetAttribute(0, 21, memory)).isOne();
    assertThat(driver.memory().pointerGetAttribute(0, 21, host.address())).isZero();
    assertThat(driver.memory().pointerGetAttribute(0, 21, pooled)).isZero();
  }

  @ParameterizedTest
  @CsvSource({"2, 1, 1, 0", "2, 1, 2, 0", "2, 1, 3, 0", "1, 1, 2, 0", "1, 2, 1, 0", "1, 3, 3, 0"})
  void poolThatCannotBeShared_hasNoHandles(int type, int handles, int location, int id) {
    assertFails(
        INVALID,
        "handle types: " + handles,
        () -> driver.pools().memPoolCreate(new PoolProperties(type, handles, location, id, 0)));
    assertThat(driver.livePools()).isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 1, 7})
  void managedMemory_isAtANodeThatThereIs(int node) {
    long managed = driver.memory().memAllocManaged(0, PAGE, 1).address();
    int host = MemLocationType.HOST_NUMA;
    assertFails(
        INVALID,
        "NUMA node: " + node,
        () -> driver.memory().memPrefetchAsync(0, managed, 1, host, node, 0));
    driver.memory().memPrefetchAsync(0, managed, 1, host, 0, 0);
  }

  @ParameterizedTest
  @ValueSource(strings = {"0-2", "2-0", "1-1", "0-1+3-1"})
  void peers_areTwoDevicesThatThereAre(String peers) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> SimulatedOptions.parse("devices=2,peers=" + peers))
        .withMessageContaining("pairs of two different devices from 0 to 1");
  }

  @Test
  void product_isOfAHandleOfItsLibrary_andDevice() {
    MatrixProduct.Operand whole = new MatrixProduct.Operand(false, 1, 0);
    MatrixProduct product =
        new MatrixProduct(MatrixType.values()[0], 1, 1, 1, whole, whole, whole, 1);
    long solver = driver.math().mathHandleCreate(MathLibrary.CUSOLVER_DN, 0);
    long second = driver.math().mathHandleCreate(MathLibrary.CUBLAS, 1);
    for (long handle : new long[] {solver, second}) {
      assertFails(
          CudaStatus.INVALID_HANDLE,
          "expected: one of cuBLAS for device 0",
          () -> driver.math().gemm(0, handle, product, memory, memory, memory));
    }
  }

  @Test
  void deviceThatIsLost_failsWhatOthersDoWithItsThings() {
    long pooled = driver.ordered().memAllocAsync(1, 64, 0);
    long theirs = driver.memory().memAlloc(1, 64);
    long of = driver.graphs().graphCreate();
    long _ =
        driver
            .graphs()
            .graphAddNode(1, of, new long[0], new GraphNodeParams.Fill(theirs, 1, 1, 8))
            .node();
    long executable = instantiated(of);
    long event = driver.events().eventCreate(1, 0);
    driver.events().eventRecord(1, event, 0);
    driver.streams().streamSynchronize(1, 0);
    loseSecondDevice();
    CudaStatus lost = CudaStatus.ILLEGAL_ADDRESS;
    assertFails(lost, "", () -> driver.memory().memFree(0, pooled));
    assertFails(lost, "", () -> driver.memory().memFree(0, theirs));
    assertFails(lost, "", () -> driver.graphs().graphUpload(0, executable, stream));
    assertFails(lost, "", () -> driver.events().eventQuery(0, event));
    assertFails(lost, "", () -> driver.events().eventElapsedTime(0, event, event));
    driver.transfers().memsetD8Async(0, memory, (byte) 3, 1, 0);
    assertThat(read(memory, 1)).containsExactly(3);
  }

  @Test
  void nodesOfMemory_andConditions_areNotChanged() {
    long condition = driver.graphs().graphConditionalHandleCreate(0, graph, 1, true);
    GraphNodeParams conditional =
        new GraphNodeParams.Conditional(condition, GraphConditionType.IF, 1);
    GraphNodeParams allocation = new GraphNodeParams.Allocation(0, 64, List.of(), 0);
    AddedNode reads = added(graph, conditional);
    AddedNode made = added(graph, allocation);
    GraphNodeParams free = new GraphNodeParams.Free(made.address());
    long[] behind = {made.node()};
    long freeing = driver.graphs().graphAddNode(0, graph, behind, free).node();
    long executable = instantiated(graph);
    Map<Long, GraphNodeParams> all =
        Map.of(reads.node(), conditional, made.node(), allocation, freeing, free);
    all.forEach((node, params) -> {
      assertFails(
          INVALID, "cannot change", () -> driver.graphs().graphNodeSetParams(0, node, params));
      assertFails(
          INVALID,
          "cannot change",
          () -> driver.graphs().graphExecNodeSetParams(0, executable, node, params));
    });
  }

  @Test
  void copyOfAGraph_hasThePrioritiesOfItsKernels() {
    SimulatedKernel kernel = SimulatedKernel.of("seldomTried", _ -> {});
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(kernel)) {
      long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(kernel)));
      long node =
          added(
                  graph,
                  new GraphNodeParams.Kernel(
                      driver.kernels().libraryGetKernel(library, kernel.name()),
                      shape(1, 1, 1, 0, false),
                      new LaunchParameters(MemorySegment.NULL, List.of())))
              .node();
      driver.graphs().graphKernelNodeSetPriority(node, -2);
      long copy = driver.graphs().graphClone(graph);
      driver.graphs().graphKernelNodeSetPriority(node, -3);
      long copied = driver.graphs().graphGetNodes(copy)[0];
      assertThat(driver.graphs().graphKernelNodeGetPriority(copied)).isEqualTo(-2);
    }
  }

  private long allocatesAndFrees(long bytes) {
    long of = driver.graphs().graphCreate();
    AddedNode made = added(of, new GraphNodeParams.Allocation(0, bytes, List.of(), 0));
    long[] behind = {made.node()};
    AddedNode _ =
        driver.graphs().graphAddNode(0, of, behind, new GraphNodeParams.Free(made.address()));
    return instantiated(of);
  }

  @Test
  void memoryThatALaunchReserved_isThere_whenAnotherNeedsLess() {
    launch(allocatesAndFrees(8 * MIB));
    launch(allocatesAndFrees(2 * MIB));
    assertThat(driver.graphs().deviceGetGraphMemAttribute(0, GraphMemAttribute.RESERVED_CURRENT))
        .isEqualTo(8 * MIB);
    long free = driver.devices().memGetInfo(0).freeBytes();
    driver.graphs().deviceGraphMemTrim(0);
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(free + 8 * MIB);
  }

  @ParameterizedTest
  @CsvSource({"true, 55.3", "false, 16.1"})
  void copyFromTheDevice_takesItsTime(boolean locked, double bytesPerNano) {
    long bytes = 16 * MIB;
    long source = driver.memory().memAlloc(0, bytes);
    MemorySegment plain = Arena.ofAuto().allocate(bytes);
    MemorySegment host = locked ? driver.memory().memHostAlloc(0, bytes, 0) : plain;
    long[] events = {driver.events().eventCreate(0, 0), driver.events().eventCreate(0, 0)};
    driver.events().eventRecord(0, events[0], stream);
    driver.transfers().memcpyDtoHAsync(0, host, source, stream);
    driver.events().eventRecord(0, events[1], stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(driver.events().eventElapsedTime(0, events[0], events[1]))
        .isCloseTo((float) (bytes / bytesPerNano / 1e6), Percentage.withPercentage(10));
  }

  /** A column of which a bit is in a mapping, much in the next, and a bit in the one after. */
  @Test
  void productThatGoesOnToOtherMappings_needsAccessToEach() {
    long range = driver.virtual().memAddressReserve(3 * PAGE, 0, 0);
    for (byte i = 0; i < 3; i++) {
      map(range + i * PAGE, (byte) (i + 1));
    }
    int rows = (int) PAGE / 8 + 2;
    MatrixProduct.Operand column = new MatrixProduct.Operand(false, rows, 0);
    MatrixProduct.Operand one = new MatrixProduct.Operand(false, 1, 0);
    MatrixProduct product =
        new MatrixProduct(MatrixType.DOUBLE, rows, 1, 1, column, one, column, 1);
    long zeros = driver.memory().memAlloc(0, rows * 8L);
    driver.transfers().memsetD8Async(0, zeros, (byte) 0, rows * 8L, 0);
    long handle = driver.math().mathHandleCreate(MathLibrary.CUBLAS, 0);
    long result = range + PAGE - 8;
    driver.math().gemm(0, handle, product, result, zeros, zeros);
    assertThat(read(result - 1, 10)).startsWith(1, 0).endsWith(0, 0);
    assertThat(read(range + 2 * PAGE - 1, 10)).startsWith(0, 0).endsWith(0, 3);
    access(range + 2 * PAGE, MemAccessFlags.READ);
    assertFails(
        CudaStatus.ILLEGAL_ADDRESS,
        "",
        () -> {
          driver.math().gemm(0, handle, product, result, zeros, zeros);
          driver.streams().streamSynchronize(0, 0);
        });
  }
}

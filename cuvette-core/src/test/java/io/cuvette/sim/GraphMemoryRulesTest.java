package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphUpdateResult;
import io.cuvette.driver.PoolProperties;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Test;

/** Memory of graphs: who frees it, when it is gone, and what a device has of it. */
class GraphMemoryRulesTest extends SimTestBase {
  private static final CudaStatus INVALID = CudaStatus.INVALID_VALUE;
  private static final long STEP = 2 * MIB;
  private static final int RELAXED = 2;

  private final long stream = stream(0);

  private AddedNode allocation(SimulatedDriver of, long graph, long bytes) {
    return of.graphs()
        .graphAddNode(
            0, graph, new long[0], new GraphNodeParams.Allocation(0, bytes, List.of(), 0));
  }

  private static long free(SimulatedDriver of, long graph, long address, long... after) {
    return of.graphs().graphAddNode(0, graph, after, new GraphNodeParams.Free(address)).node();
  }

  private static long executable(SimulatedDriver of, long graph) {
    return of.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
  }

  private long now(GraphMemAttribute attribute) {
    return driver.graphs().deviceGetGraphMemAttribute(0, attribute);
  }

  private void launch(long executable) {
    driver.graphs().graphLaunch(0, executable, stream);
    driver.streams().streamSynchronize(0, stream);
  }

  private static final List<BiConsumer<SimulatedDriver, Long>> FREES =
      List.of(
          (own, address) -> own.memory().memFree(0, address),
          (own, address) -> own.ordered().memFreeAsync(0, address, 0),
          (own, address) -> {
            long graph = own.graphs().graphCreate();
            free(own, graph, address);
            own.graphs().graphLaunch(0, executable(own, graph), 0);
            own.graphs().graphDestroy(graph);
          });

  @Test
  void memoryThatALaunchLeft_isFreedOnce_andAllocatedAgain() {
    for (BiConsumer<SimulatedDriver, Long> free : FREES) {
      long graph = driver.graphs().graphCreate();
      long address = allocation(driver, graph, 64).address();
      long executable = executable(driver, graph);
      assertFails(INVALID, "not allocated", () -> free.accept(driver, address));
      for (int launch = 0; launch < 3; launch++) {
        driver.graphs().graphLaunch(0, executable, 0);
        driver.transfers().memsetD8Async(0, address, (byte) launch, 64, 0);
        assertThat(read(address, 64)).containsOnly(launch);
        assertThat(driver.liveBytes(0)).isEqualTo(512);
        free.accept(driver, address);
        assertThat(driver.liveBytes(0)).isZero();
        driver.streams().streamSynchronize(0, 0);
        assertThat(now(GraphMemAttribute.USED_CURRENT)).isZero();
        assertFails(INVALID, "not allocated", () -> free.accept(driver, address));
      }
    }
  }

  /** A launch comes behind the one before, and so does its free of what that one left. */
  @Test
  void memoryThatALaunchLeft_isFreedBehindIt_byALaunchInAnotherStream() {
    for (SimulatedOrder order : SimulatedOrder.values()) {
      String settings = "memory=64MiB,pace=lazy,order=" + order.name().toLowerCase(Locale.ROOT);
      try (SimulatedDriver own = SimulatedDriver.open(SimulatedOptions.parse(settings))) {
        long graph = own.graphs().graphCreate();
        AddedNode made = allocation(own, graph, 64);
        GraphNodeParams fill = new GraphNodeParams.Fill(made.address(), 5, 1, 64);
        assertThat(own.graphs().graphAddNode(0, graph, new long[] {made.node()}, fill)).isNotNull();
        long frees = own.graphs().graphInstantiateWithParams(0, graph, 1, 0).executable();
        long first = own.streams().streamCreateWithPriority(0, 1, 0);
        long second = own.streams().streamCreateWithPriority(0, 1, 0);
        own.graphs().graphLaunch(0, frees, first);
        own.graphs().graphLaunch(0, frees, second);
        try (Arena arena = Arena.ofConfined()) {
          MemorySegment back = arena.allocate(64);
          own.transfers().memcpyDtoHAsync(0, back, made.address(), second);
          own.streams().streamSynchronize(0, second);
          assertThat(back.toArray(ValueLayout.JAVA_BYTE)).containsOnly(5);
        }
      }
    }
  }

  @Test
  void memoryThatWasFreed_isNoMore_howeverThatWasDone() {
    for (int way = 0; way <= FREES.size(); way++) {
      try (SimulatedDriver own = SimulatedDriver.open(SimulatedOptions.parse("memory=64MiB"))) {
        long graph = own.graphs().graphCreate();
        AddedNode made = allocation(own, graph, 64);
        if (way == FREES.size()) {
          free(own, graph, made.address(), made.node());
        }
        long target = own.memory().memAlloc(0, 64);
        own.graphs().graphLaunch(0, executable(own, graph), 0);
        if (way < FREES.size()) {
          own.transfers().memsetD8Async(0, made.address(), (byte) 1, 64, 0);
          FREES.get(way).accept(own, made.address());
        }
        own.streams().streamSynchronize(0, 0);
        CudaStatus status = CudaStatus.ILLEGAL_ADDRESS;
        assertFails(
            status,
            "",
            () -> {
              own.transfers().memcpyAsync(0, target, made.address(), 64, 0);
              own.streams().streamSynchronize(0, 0);
            });
      }
    }
  }

  @Test
  void freeNodes_areInOtherGraphs_orInTheOneThatAllocates() {
    long graph = driver.graphs().graphCreate();
    AddedNode made = allocation(driver, graph, 64);
    long one = driver.graphs().graphCreate();
    long other = driver.graphs().graphCreate();
    free(driver, one, made.address());
    free(driver, other, made.address());
    for (long each : new long[] {other, graph}) {
      assertFails(INVALID, "freed by a node", () -> free(driver, each, made.address()));
    }
    driver.graphs().graphDestroy(one);
    for (long each : new long[] {other, graph}) {
      assertFails(INVALID, "freed by a node", () -> free(driver, each, made.address()));
    }
    driver.graphs().graphDestroy(other);
    free(driver, graph, made.address(), made.node());
    long third = driver.graphs().graphCreate();
    for (long each : new long[] {third, graph}) {
      assertFails(INVALID, "freed by a node", () -> free(driver, each, made.address()));
    }
  }

  @Test
  void trim_keepsWhatIsInUse() {
    long left = driver.graphs().graphCreate();
    long address = allocation(driver, left, 64).address();
    long passing = driver.graphs().graphCreate();
    AddedNode made = allocation(driver, passing, 2 * STEP);
    free(driver, passing, made.address(), made.node());
    long before = driver.devices().memGetInfo(0).freeBytes();
    launch(executable(driver, left));
    launch(executable(driver, passing));
    assertThat(now(GraphMemAttribute.USED_CURRENT)).isEqualTo(STEP);
    long high = now(GraphMemAttribute.RESERVED_HIGH);
    assertThat(now(GraphMemAttribute.RESERVED_CURRENT)).isGreaterThan(STEP).isEqualTo(high);
    for (int trim = 0; trim < 2; trim++) {
      driver.graphs().deviceGraphMemTrim(0);
      assertThat(now(GraphMemAttribute.RESERVED_CURRENT)).isEqualTo(STEP);
      assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(before - STEP);
    }
    assertThat(now(GraphMemAttribute.RESERVED_HIGH)).isEqualTo(high);
    driver.memory().memFree(0, address);
    driver.graphs().deviceGraphMemTrim(0);
    for (GraphMemAttribute attribute : GraphMemAttribute.values()) {
      if (attribute.name().endsWith("HIGH")) {
        driver.graphs().deviceResetGraphMemAttribute(0, attribute);
      } else {
        assertFails(INVALID, "", () -> driver.graphs().deviceResetGraphMemAttribute(0, attribute));
      }
      assertThat(now(attribute)).as(attribute.name()).isZero();
    }
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(before);
  }

  @Test
  void launch_mayTakeAllThatIsFree_andNoStepMore() {
    long free = driver.devices().memGetInfo(0).freeBytes();
    if (free % STEP > 0) {
      driver.memory().memAlloc(0, free % STEP);
    }
    long all = driver.devices().memGetInfo(0).freeBytes();
    assertThat(all % STEP).isZero();
    long more = driver.graphs().graphCreate();
    allocation(driver, more, all / 2);
    allocation(driver, more, all / 2 + 512);
    long tooMuch = executable(driver, more);
    assertFails(CudaStatus.OUT_OF_MEMORY, "for graphs", () -> launch(tooMuch));
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(all);
    assertThat(now(GraphMemAttribute.RESERVED_CURRENT)).isZero();
    long graph = driver.graphs().graphCreate();
    allocation(driver, graph, all / 2);
    allocation(driver, graph, all / 2);
    launch(executable(driver, graph));
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isZero();
  }

  /** The address belongs to the executable that runs, even if the program destroyed it. */
  @Test
  void executableThatRuns_isThereUntilItHasEnded() {
    for (boolean keepsGraph : new boolean[] {true, false}) {
      int live = driver.liveAllocations();
      long graph = driver.graphs().graphCreate();
      AddedNode made = allocation(driver, graph, 64);
      free(driver, graph, made.address(), made.node());
      long executable = executable(driver, graph);
      CountDownLatch goOn = hold(0, stream);
      driver.graphs().graphLaunch(0, executable, stream);
      driver.graphs().graphExecDestroy(executable);
      if (keepsGraph) {
        assertFails(CudaStatus.NOT_SUPPORTED, "already", () -> executable(driver, graph));
      } else {
        driver.graphs().graphDestroy(graph);
      }
      goOn.countDown();
      driver.streams().streamSynchronize(0, stream);
      if (keepsGraph) {
        driver.graphs().graphExecDestroy(executable(driver, graph));
        driver.graphs().graphDestroy(graph);
      }
      assertThat(driver.liveAllocations()).isEqualTo(live);
      assertFails(
          INVALID,
          "live memory",
          () -> driver.transfers().memsetD8Async(0, made.address(), (byte) 1, 1, stream));
    }
  }

  @Test
  void update_fitsTheSameMemoryAlone() {
    long graph = driver.graphs().graphCreate();
    AddedNode made = allocation(driver, graph, 64);
    free(driver, graph, made.address(), made.node());
    long executable = executable(driver, graph);
    assertThat(driver.graphs().graphExecUpdate(0, executable, graph))
        .isEqualTo(new GraphUpdateResult(0, 0, 0));
    long other = driver.graphs().graphCreate();
    AddedNode another = allocation(driver, other, 64);
    free(driver, other, another.address(), another.node());
    int parameters = 5;
    assertThat(driver.graphs().graphExecUpdate(0, executable, other))
        .isEqualTo(new GraphUpdateResult(parameters, another.node(), 0));
    launch(executable);
  }

  @Test
  void capturedAllocation_isForTheDevicesThatMayWriteToThePool() {
    SimulatedOptions four = SimulatedOptions.parse("devices=5,memory=64MiB,peers=all");
    try (SimulatedDriver own = SimulatedDriver.open(four)) {
      long pool = own.pools().memPoolCreate(new PoolProperties(1, 0, 1, 1, 0));
      own.pools().memPoolSetAccess(pool, 1, new int[] {0, 2, 4}, 1, 3, 3);
      long queue = own.streams().streamCreateWithPriority(0, 1, 0);
      own.captures().streamBeginCapture(0, queue, RELAXED);
      long address = own.ordered().memAllocFromPoolAsync(0, 64, pool, queue);
      long graph = own.captures().streamEndCapture(0, queue);
      long node = own.graphs().graphGetNodes(graph)[0];
      assertThat(own.graphs().graphNodeGetParams(node))
          .isEqualTo(new GraphNodeParams.Allocation(1, 64, List.of(2, 4), address));
    }
  }

  @Test
  void memoryOfPoolsThatGraphsDoNotHave_isNotCaptured() {
    List<PoolProperties> all =
        List.of(
            new PoolProperties(1, 0, 2, 0, 0),
            new PoolProperties(1, 0, 3, 0, 0),
            new PoolProperties(2, 0, 0, 0, 0),
            new PoolProperties(2, 0, 1, 0, 0));
    for (PoolProperties each : all) {
      long pool = driver.pools().memPoolCreate(each);
      String before = SimOperations.state(driver, 0);
      driver.captures().streamBeginCapture(0, stream, RELAXED);
      assertFails(
          CudaStatus.STREAM_CAPTURE_UNSUPPORTED,
          "cannot be captured",
          () -> driver.ordered().memAllocFromPoolAsync(0, 64, pool, stream));
      assertFails(
          CudaStatus.STREAM_CAPTURE_INVALIDATED,
          "during",
          () -> driver.captures().streamEndCapture(0, stream));
      assertThat(SimOperations.state(driver, 0)).isEqualTo(before);
    }
  }
}

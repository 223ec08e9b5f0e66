package io.cuvette.sim;

import static io.cuvette.driver.CudaStatus.COOPERATIVE_LAUNCH_TOO_LARGE;
import static io.cuvette.driver.CudaStatus.INVALID_CLUSTER_SIZE;
import static io.cuvette.driver.CudaStatus.INVALID_VALUE;
import static io.cuvette.sim.SimulatedParameter.POINTER;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Shapes of launches: the limits of each of their numbers, and clusters that run together. */
@Timeout(60)
class KernelShapesTest extends SimTestBase {
  private static final int SEEDS = 12;
  private static final int LARGE_CLUSTERS = 14;
  private static final AtomicInteger NAMES = new AtomicInteger();

  private final List<SimulatedKernels.Registered> registered = new ArrayList<>();

  @AfterEach
  void unregister() {
    registered.forEach(SimulatedKernels.Registered::close);
  }

  private long find(SimulatedDriver on, KernelFunction function, int shared) {
    SimulatedKernel made =
        SimulatedKernel.of("shaped" + NAMES.incrementAndGet(), function, POINTER)
            .withSharedBytes(shared);
    registered.add(SimulatedKernels.register(made));
    long library = on.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(made)));
    return on.kernels().libraryGetKernel(library, made.name());
  }

  private static void launch(SimulatedDriver on, long kernel, LaunchShape shape, long address) {
    launch(on, 0, kernel, shape, address);
  }

  private static void launch(
      SimulatedDriver on, long stream, long kernel, LaunchShape shape, long address) {
    MemorySegment values = Arena.ofAuto().allocate(JAVA_LONG);
    values.set(JAVA_LONG, 0, address);
    LaunchParameters arguments = new LaunchParameters(values, List.of(new KernelParameter(0, 8)));
    on.kernels().launchKernel(0, stream, kernel, shape, arguments);
  }

  private static LaunchShape grid(int x, int y, int z) {
    return new LaunchShape(x, y, z, 1, 1, 1, 1, 1, 1, 0, false, false);
  }

  private static LaunchShape block(int x, int y, int z) {
    return new LaunchShape(1, 1, 1, x, y, z, 1, 1, 1, 0, false, false);
  }

  private static LaunchShape cluster(int x, int y, int z) {
    return new LaunchShape(16, 16, 16, 1, 1, 1, x, y, z, 0, false, false);
  }

  private record Refused(LaunchShape shape, CudaStatus status, String text) {}

  @Test
  void eachNumberOfAShape_hasItsLimits() {
    long kernel = find(driver, _ -> {}, 0);
    long memory = driver.memory().memAlloc(0, 4);
    List<Refused> refused =
        List.of(
            new Refused(grid(1, 0, 1), INVALID_VALUE, "gridY: 0 (expected: 1 to 65535)"),
            new Refused(grid(1, 65_536, 1), INVALID_VALUE, "gridY: 65536"),
            new Refused(grid(1, 1, 0), INVALID_VALUE, "gridZ: 0 (expected: 1 to 65535)"),
            new Refused(grid(1, 1, 65_536), INVALID_VALUE, "gridZ: 65536"),
            new Refused(block(0, 1, 1), INVALID_VALUE, "blockX: 0 (expected: 1 to 1024)"),
            new Refused(block(1, 0, 1), INVALID_VALUE, "blockY: 0 (expected: 1 to 1024)"),
            new Refused(block(1, 1025, 1), INVALID_VALUE, "blockY: 1025"),
            new Refused(block(1, 1, 0), INVALID_VALUE, "blockZ: 0 (expected: 1 to 64)"),
            new Refused(block(1, 1, 65), INVALID_VALUE, "blockZ: 65"),
            new Refused(block(64, 16, 2), INVALID_VALUE, "threads of a block: 2048"),
            new Refused(block(5, 205, 1), INVALID_VALUE, "threads of a block: 1025"),
            new Refused(block(2, 513, 1), INVALID_VALUE, "threads of a block: 1026"),
            new Refused(block(1024, 1024, 64), INVALID_VALUE, "threads of a block: 67108864"),
            new Refused(cluster(0, 1, 1), INVALID_VALUE, "clusterX: 0 (expected: 1 to 16)"),
            new Refused(cluster(17, 1, 1), INVALID_VALUE, "clusterX: 17"),
            new Refused(cluster(1, 0, 1), INVALID_VALUE, "clusterY: 0 (expected: 1 to 16)"),
            new Refused(cluster(1, 17, 1), INVALID_VALUE, "clusterY: 17"),
            new Refused(cluster(1, 1, 0), INVALID_VALUE, "clusterZ: 0 (expected: 1 to 16)"),
            new Refused(cluster(1, 1, 17), INVALID_VALUE, "clusterZ: 17"),
            new Refused(cluster(2, 3, 2), INVALID_CLUSTER_SIZE, "cluster: 12 blocks"),
            new Refused(cluster(3, 1, 1), INVALID_CLUSTER_SIZE, "gridX: 16 blocks"),
            new Refused(cluster(1, 3, 1), INVALID_CLUSTER_SIZE, "gridY: 16 blocks"),
            new Refused(cluster(1, 1, 3), INVALID_CLUSTER_SIZE, "gridZ: 16 blocks"));
    for (Refused each : refused) {
      assertFails(each.status, each.text, () -> launch(driver, kernel, each.shape, memory));
    }
    long captured = stream(0); // nothing runs
    driver.captures().streamBeginCapture(0, captured, 2);
    List<LaunchShape> most =
        List.of(
            grid(1 << 24, 1, 1),
            grid(1, 65_535, 1),
            grid(1, 1, 65_535),
            block(1024, 1, 1),
            block(1, 1024, 1),
            block(4, 4, 64),
            cluster(2, 2, 2));
    most.forEach(each -> launch(driver, captured, kernel, each, memory));
    long graph = driver.captures().streamEndCapture(0, captured);
    assertThat(driver.graphs().graphGetNodes(graph)).hasSize(most.size());
  }

  @Test
  void questionsAboutClusters_haveTheLimitsOfLaunches() {
    long kernel = find(driver, _ -> {}, 0);
    var calls = driver.kernels();
    for (LaunchShape each : List.of(block(1025, 1, 1), block(64, 16, 2))) {
      String text = "threads of a block: ";
      assertFails(INVALID_VALUE, text, () -> calls.occupancyMaxActiveClusters(0, kernel, each));
      assertFails(
          INVALID_VALUE, text, () -> calls.occupancyMaxPotentialClusterSize(0, kernel, each));
    }
    for (LaunchShape each : List.of(cluster(1, 0, 1), cluster(1, 17, 1), cluster(1, 1, 17))) {
      assertFails(
          INVALID_VALUE, "cluster", () -> calls.occupancyMaxActiveClusters(0, kernel, each));
    }
  }

  @Test
  void sharedMemoryThatTheCodeDeclares_isLessForLaunches() {
    int declared = 2000;
    long kernel = find(driver, _ -> {}, declared);
    var calls = driver.kernels();
    assertThat(calls.kernelGetAttribute(1, kernel, 0)).isEqualTo(declared);
    assertThat(calls.kernelGetAttribute(8, kernel, 0)).isEqualTo(49_152 - declared);
    assertThat(calls.occupancyAvailableDynamicSMemPerBlock(0, kernel, 1, 32))
        .isEqualTo(232_448 - declared);
    assertThat(calls.occupancyAvailableDynamicSMemPerBlock(0, kernel, 4, 32))
        .isEqualTo(233_472 / 4 - 1024 - declared);
    int most = 232_448 - declared;
    assertThat(calls.occupancyMaxActiveBlocksPerMultiprocessor(0, kernel, 32, most)).isEqualTo(1);
    assertThat(calls.occupancyMaxActiveBlocksPerMultiprocessor(0, kernel, 32, most + 1)).isZero();
    assertThat(calls.occupancyMaxActiveBlocksPerMultiprocessor(0, kernel, 1025, 0)).isZero();
    for (int value : new int[] {0, most}) {
      calls.kernelSetAttribute(8, value, kernel, 0);
      assertThat(calls.kernelGetAttribute(8, kernel, 0)).isEqualTo(value);
    }
    for (int value : new int[] {-1, most + 1, 232_448}) {
      assertFails(
          CudaStatus.INVALID_VALUE,
          "value: %d (expected: 0 to %d)".formatted(value, most),
          () -> calls.kernelSetAttribute(8, value, kernel, 0));
    }
    long memory = driver.memory().memAlloc(0, 4);
    LaunchShape fits = new LaunchShape(264, 1, 1, 1, 1, 1, 1, 1, 1, 100_000, true, false);
    calls.kernelSetAttribute(8, 100_000, kernel, 0);
    LaunchShape more = new LaunchShape(265, 1, 1, 1, 1, 1, 1, 1, 1, 100_000, true, false);
    launch(driver, kernel, fits, memory);
    assertFails(COOPERATIVE_LAUNCH_TOO_LARGE, "<= 264", () -> launch(driver, kernel, more, memory));
    driver.streams().streamSynchronize(0, 0);
  }

  /** The blocks of all clusters are resident together, and each cluster meets by itself. */
  @Test
  void clustersOfACooperativeLaunch_seeTheMemoryOfTheirOwnBlocks() {
    LaunchShape shape = new LaunchShape(6, 1, 1, 4, 1, 1, 2, 1, 1, 0, true, false);
    for (int seed = 0; seed < SEEDS; seed++) {
      try (SimulatedDriver other = SimulatedDriver.open(SimulatedOptions.DEFAULTS.withSeed(seed))) {
        long kernel =
            find(
                other,
                t -> {
                  long at = 4L * t.threadX();
                  t.shared().set(JAVA_INT, at, 10 * t.blockX() + t.threadX());
                  t.syncCluster();
                  int seen = t.shared(1 - t.clusterRank()).get(JAVA_INT, at);
                  t.setInt(t.pointer(0) + 4L * t.globalX(), seen);
                  t.syncGrid();
                },
                16);
        long memory = other.memory().memAlloc(0, 96);
        launch(other, kernel, shape, memory);
        MemorySegment host = Arena.ofAuto().allocate(96, 4);
        other.transfers().memcpyDtoHAsync(0, host, memory, 0);
        other.streams().streamSynchronize(0, 0);
        int[] expected = new int[24];
        for (int i = 0; i < expected.length; i++) {
          expected[i] = 10 * (i / 4 % 2 == 0 ? i / 4 + 1 : i / 4 - 1) + i % 4;
        }
        assertThat(host.toArray(JAVA_INT)).as("seed %d", seed).isEqualTo(expected);
      }
    }
  }

  @Test
  void largestClusters_needTheAttribute() {
    long kernel =
        find(
            driver,
            t -> {
              t.syncCluster();
              int _ = t.atomicAdd(t.pointer(0), t.clusterRank());
            },
            0);
    long memory = driver.memory().memAlloc(0, 4);
    driver.transfers().memsetD32Async(0, memory, 0, 1, 0);
    LaunchShape large = new LaunchShape(1, 4, 4, 1, 1, 1, 1, 4, 4, 0, false, false);
    assertFails(INVALID_CLUSTER_SIZE, "<= 8", () -> launch(driver, kernel, large, memory));
    driver.kernels().kernelSetAttribute(LARGE_CLUSTERS, 1, kernel, 0);
    launch(driver, kernel, large, memory);
    assertThat(ByteBuffer.wrap(read(memory, 4)).order(ByteOrder.nativeOrder()).getInt())
        .isEqualTo(15 * 16 / 2);
  }
}

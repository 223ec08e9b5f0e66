package io.cuvette.sim;

import static io.cuvette.driver.CudaStatus.INVALID_VALUE;
import static io.cuvette.sim.SimulatedParameter.INT;
import static io.cuvette.sim.SimulatedParameter.POINTER;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.PoolProperties;
import io.cuvette.driver.PotentialBlockSize;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Longs and bytes of kernels, and what may be asked of a kernel and set. */
@Timeout(60)
class KernelCallsTest extends SimTestBase {
  private static final int THREADS = 1024;
  private static final int DYNAMIC_SHARED = 8;
  private static final int CARVEOUT = 9;
  private static final int LARGE_CLUSTERS = 14;
  private static final int POLICY = 15;

  private final List<SimulatedKernels.Registered> registered = new ArrayList<>();
  private final long memory = driver.memory().memAlloc(0, 64);

  @AfterEach
  void unregister() {
    registered.forEach(SimulatedKernels.Registered::close);
  }

  private long find(KernelFunction function) {
    SimulatedKernel made = SimulatedKernel.of("called" + registered.size(), function, POINTER, INT);
    registered.add(SimulatedKernels.register(made));
    long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(made)));
    return driver.kernels().libraryGetKernel(library, made.name());
  }

  private static LaunchShape shape(int blocks, int threads, int cluster) {
    return new LaunchShape(blocks, 1, 1, threads, 1, 1, cluster, 1, 1, 0, false, false);
  }

  private LaunchParameters arguments(int count) {
    MemorySegment values = Arena.ofAuto().allocate(16, 8);
    values.set(JAVA_LONG, 0, memory);
    values.set(JAVA_INT, 8, 7);
    return new LaunchParameters(
        values, List.of(new KernelParameter(0, 8), new KernelParameter(8, 4)).subList(0, count));
  }

  private void launch(KernelFunction function, int threads) {
    driver.kernels().launchKernel(0, 0, find(function), shape(1, threads, 1), arguments(2));
    driver.streams().streamSynchronize(0, 0);
  }

  private long longAt(int index) {
    return ByteBuffer.wrap(read(memory, 64)).order(ByteOrder.nativeOrder()).getLong(8 * index);
  }

  @Test
  void longsAndBytes_areThoseOfMemory() {
    driver.transfers().memsetD8Async(0, memory, (byte) 0, 64, 0);
    List<Long> seen = new ArrayList<>();
    launch(
        t -> {
          long at = t.pointer(0);
          t.setLong(at + 8, 0x1_0000_0001L);
          t.setByte(at + 13, (byte) -2);
          seen.add(t.getLong(at + 8));
          seen.add((long) t.getByte(at + 13));
          seen.add(t.atomicUpdateLong(at + 8, old -> old + (1L << 33)));
          seen.add(t.atomicUpdateLong(at + 8, old -> old));
          t.setLong(at + 16, t.getLong(at + 8) * 2);
        },
        1);
    long second = 0xFE01_0000_0001L;
    assertThat(seen).containsExactly(second, -2L, second, second + (1L << 33));
    assertThat(longAt(0)).isZero();
    assertThat(longAt(1)).isEqualTo(second + (1L << 33));
    assertThat(longAt(2)).isEqualTo(2 * longAt(1));
    assertThat(longAt(3)).isZero();
  }

  /** Only managed memory comes to the device that uses it. */
  @Test
  void pageLockedMemory_staysWhereItIs() {
    MemorySegment pinned = driver.memory().memHostAlloc(0, 4 * MIB, 0);
    MemorySegment own = Arena.ofAuto().allocate(4 * MIB, 8);
    driver.memory().memHostRegister(0, own, 0);
    for (MemorySegment host : List.of(pinned, own)) {
      long free = driver.devices().memGetInfo(0).freeBytes();
      long address = host.address();
      launch(
          thread -> {
            thread.setInt(address, 5);
            thread.setInt(address + 2 * MIB, 6);
          },
          1);
      assertThat(host.get(JAVA_INT, 0)).isEqualTo(5);
      assertThat(host.get(JAVA_INT, 2 * MIB)).isEqualTo(6);
      assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(free);
    }
    driver.memory().memHostUnregister(0, own.address());
  }

  /** Each waits for the one before it, by looks that are no writes. */
  @Test
  void threadsThatLookAtALong_seeWhatOthersWrite() {
    driver.transfers().memsetD8Async(0, memory, (byte) 0, 64, 0);
    launch(
        t -> {
          int turn = t.threadX();
          if (turn % 2 == 0) {
            while (t.getLong(t.pointer(0)) != turn) {
              Thread.onSpinWait();
            }
          } else {
            while (t.atomicUpdateLong(t.pointer(0), old -> old) != turn) {
              Thread.onSpinWait();
            }
          }
          t.setByte(t.pointer(0), (byte) (turn + 1));
          t.atomicUpdateLong(t.pointer(0) + 8, old -> old + turn);
        },
        8);
    assertThat(longAt(0)).isEqualTo(8);
    assertThat(longAt(1)).isEqualTo(7 * 8 / 2);
  }

  @Test
  void longThatIsNotAligned_losesTheDevice() {
    assertFails(
        CudaStatus.MISALIGNED_ADDRESS,
        "expected: a multiple of 8",
        () -> launch(t -> t.atomicUpdateLong(t.pointer(0) + 4, old -> old + 1), 1));
  }

  @Test
  void bytesOfMemoryThatTheDeviceMayOnlyRead_areReadAndNotWritten() {
    long pool = driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, 0));
    driver.pools().memPoolSetAccess(pool, 1, new int[] {1}, 1);
    long lent = driver.ordered().memAllocFromPoolAsync(0, 64, pool, 0);
    driver.streams().streamSynchronize(0, 0);
    MemorySegment bytes = Arena.ofAuto().allocate(8);
    long reads = find(t -> t.getBytes(lent, bytes));
    driver.kernels().launchKernel(1, 0, reads, shape(1, 1, 1), arguments(2));
    driver.streams().streamSynchronize(1, 0);
    long writes = find(t -> t.setBytes(lent, bytes));
    driver.kernels().launchKernel(1, 0, writes, shape(1, 1, 1), arguments(2));
    assertFails(
        CudaStatus.ILLEGAL_ADDRESS, "access", () -> driver.streams().streamSynchronize(1, 0));
  }

  @Test
  void structureThatIsNoParameter_failsTheLaunch() {
    assertFails(
        CudaStatus.LAUNCH_FAILED,
        "parameter 2 (expected: >= 0 and below 2",
        () -> launch(t -> t.setByte(t.pointer(0), t.struct(2).get(JAVA_BYTE, 0)), 1));
  }

  @Test
  void launchWithoutAllArguments_isRefused() {
    long kernel = find(_ -> {});
    assertFails(
        INVALID_VALUE,
        "1 arguments (expected: 2, those of called0)",
        () -> driver.kernels().launchKernel(0, 0, kernel, shape(1, 1, 1), arguments(1)));
    driver.kernels().launchKernel(0, 0, kernel, shape(1, 1, 1), arguments(2));
    driver.streams().streamSynchronize(0, 0);
  }

  private void assertRange(long kernel, int attribute, int least, int most) {
    for (int value : new int[] {least, most}) {
      driver.kernels().kernelSetAttribute(attribute, value, kernel, 1);
      assertThat(driver.kernels().kernelGetAttribute(attribute, kernel, 1)).isEqualTo(value);
      assertThat(driver.kernels().kernelGetAttribute(attribute, kernel, 0)).isIn(-1, 0);
    }
    for (int value : new int[] {least - 1, most + 1}) {
      assertFails(
          INVALID_VALUE,
          "value: %d (expected: %d to %d)".formatted(value, least, most),
          () -> driver.kernels().kernelSetAttribute(attribute, value, kernel, 1));
    }
    assertThat(driver.kernels().kernelGetAttribute(attribute, kernel, 1)).isEqualTo(most);
  }

  @Test
  void attributesThatAreSet_areThoseOfOneDevice_andInTheirRange() {
    long kernel = find(_ -> {});
    assertThat(driver.kernels().kernelGetAttribute(CARVEOUT, kernel, 0)).isEqualTo(-1);
    assertRange(kernel, CARVEOUT, -1, 100);
    assertRange(kernel, POLICY, 0, 2);
    assertRange(kernel, LARGE_CLUSTERS, 0, 1);
    for (int readOnly : new int[] {0, 1, 2, 3, 4, 5, 6, 7}) {
      assertFails(
          INVALID_VALUE,
          "attribute: %d cannot be set".formatted(readOnly),
          () -> driver.kernels().kernelSetAttribute(readOnly, 1, kernel, 0));
    }
    assertThat(driver.kernels().kernelGetAttribute(0, kernel, 0)).isEqualTo(THREADS);
    assertThat(driver.kernels().kernelGetAttribute(4, kernel, 0)).isEqualTo(32);
    assertThat(driver.kernels().kernelGetAttribute(6, kernel, 0))
        .as("code for sm_90")
        .isEqualTo(90);
  }

  @Test
  void sharedMemoryAllowedOnOneDevice_isForLaunchesThereAlone() {
    long kernel = find(_ -> {});
    LaunchShape large = new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 60_000, false, false);
    driver.kernels().kernelSetAttribute(DYNAMIC_SHARED, 60_000, kernel, 1);
    driver.kernels().launchKernel(1, 0, kernel, large, arguments(2));
    assertFails(
        INVALID_VALUE,
        "60000 bytes (expected: 0 to 49152",
        () -> driver.kernels().launchKernel(0, 0, kernel, large, arguments(2)));
    driver.streams().streamSynchronize(1, 0);
  }

  @Test
  void blocksThatNoMultiprocessorHasRoomFor_areNone() {
    long kernel = find(_ -> {});
    assertThat(driver.kernels().occupancyMaxActiveBlocksPerMultiprocessor(0, kernel, 32, 232_448))
        .isEqualTo(1);
    assertThat(driver.kernels().occupancyMaxActiveBlocksPerMultiprocessor(0, kernel, 32, 232_449))
        .isZero();
    assertThat(
            driver.kernels().occupancyMaxActiveBlocksPerMultiprocessor(0, kernel, THREADS + 1, 0))
        .isZero();
    assertThat(driver.kernels().occupancyMaxPotentialBlockSize(0, kernel, 0, 96))
        .isEqualTo(new PotentialBlockSize(132 * 21, 96));
    assertFails(
        INVALID_VALUE,
        "limit: -1",
        () -> driver.kernels().occupancyMaxPotentialBlockSize(0, kernel, 0, -1));
    assertFails(
        CudaStatus.INVALID_CLUSTER_SIZE,
        "cluster: 16 blocks",
        () -> driver.kernels().occupancyMaxActiveClusters(0, kernel, shape(16, 32, 16)));
    LaunchShape inAllDirections = new LaunchShape(2, 2, 2, 1024, 1, 1, 2, 2, 2, 0, false, false);
    assertThat(driver.kernels().occupancyMaxActiveClusters(0, kernel, inAllDirections))
        .isEqualTo(driver.kernels().occupancyMaxActiveClusters(0, kernel, shape(8, 1024, 8)));
    driver.kernels().kernelSetAttribute(LARGE_CLUSTERS, 1, kernel, 0);
    assertThat(driver.kernels().occupancyMaxActiveClusters(0, kernel, shape(16, 1024, 16)))
        .isEqualTo(16);
    assertThat(driver.kernels().occupancyMaxPotentialClusterSize(0, kernel, shape(16, 32, 1)))
        .isEqualTo(16);
  }

  /** Of all dimensions together: one that is small enough may be many times as large. */
  @Test
  void gridOfTooManyBlocks_isRefused_howeverTheyLie() {
    long kernel = find(_ -> {});
    for (int[] grid :
        new int[][] {{(1 << 24) + 1, 1, 1}, {4097, 4096, 1}, {4096, 4096, 2}, {257, 1, 65_535}}) {
      LaunchShape shape =
          new LaunchShape(grid[0], grid[1], grid[2], 1, 1, 1, 1, 1, 1, 0, false, false);
      assertFails(
          CudaStatus.NOT_SUPPORTED,
          "a grid of %d x %d x %d blocks".formatted(grid[0], grid[1], grid[2]),
          () -> driver.kernels().launchKernel(0, 0, kernel, shape, arguments(2)));
    }
  }

  @Test
  void kernelThatGoesBeyondABlock_isToldWhich() {
    long block = driver.memory().memAlloc(0, 6);
    assertFails(
        CudaStatus.ILLEGAL_ADDRESS,
        "4 bytes at 0x%x are not in 0x%x: 6 bytes, device 0".formatted(block + 4, block),
        () -> launch(t -> t.setInt(block + 4, 1), 1));
  }

  /** It is told what it asked wrongly, and fails no launch, which is not its own. */
  @Test
  void wrongParameterOfAnotherJavaThread_failsNoLaunch() {
    List<Throwable> seen = new ArrayList<>();
    launch(
        t -> {
          seen.add(catchThrowable(() -> CompletableFuture.runAsync(() -> t.pointer(2)).join()));
          seen.add(catchThrowable(() -> CompletableFuture.runAsync(() -> t.longValue(1)).join()));
        },
        1);
    assertThat(seen).hasSize(2);
    assertThat(seen.getFirst()).hasMessageContaining("parameter 2 (expected");
    assertThat(seen.getLast()).hasMessageContaining("parameter 1 read as 8 bytes");
  }

  /** As an array of longs is, wherever it is among the parameters; and nobody can write it. */
  @Test
  void structure_isACopyThatIsAligned() {
    SimulatedKernel made =
        SimulatedKernel.of(
            "aligned",
            t -> {
              MemorySegment struct = t.struct(1);
              assertThat(struct.byteSize()).isEqualTo(8);
              assertThat(struct.isReadOnly()).isTrue();
              t.setLong(t.pointer(2), struct.get(JAVA_LONG, 0));
            },
            INT,
            SimulatedParameter.struct(8, 4),
            POINTER);
    registered.add(SimulatedKernels.register(made));
    long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(made)));
    long kernel = driver.kernels().libraryGetKernel(library, made.name());
    MemorySegment values = Arena.ofAuto().allocate(24, 8);
    values.set(JAVA_LONG_UNALIGNED, 4, 0x1234_5678_9ABCL);
    values.set(JAVA_LONG, 16, memory);
    List<KernelParameter> layout =
        List.of(new KernelParameter(0, 4), new KernelParameter(4, 8), new KernelParameter(16, 8));
    driver
        .kernels()
        .launchKernel(0, 0, kernel, shape(1, 1, 1), new LaunchParameters(values, layout));
    driver.streams().streamSynchronize(0, 0);
    assertThat(longAt(0)).isEqualTo(0x1234_5678_9ABCL);
  }
}

package io.cuvette.sim;

import static io.cuvette.driver.CudaStatus.COOPERATIVE_LAUNCH_TOO_LARGE;
import static io.cuvette.driver.CudaStatus.ILLEGAL_ADDRESS;
import static io.cuvette.driver.CudaStatus.INVALID_CLUSTER_SIZE;
import static io.cuvette.driver.CudaStatus.INVALID_VALUE;
import static io.cuvette.driver.CudaStatus.LAUNCH_FAILED;
import static io.cuvette.driver.CudaStatus.LAUNCH_TIMEOUT;
import static io.cuvette.driver.CudaStatus.MISALIGNED_ADDRESS;
import static io.cuvette.driver.CudaStatus.NOT_FOUND;
import static io.cuvette.sim.SimulatedParameter.INT;
import static io.cuvette.sim.SimulatedParameter.POINTER;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongPredicate;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Kernels as Java functions: what they see, in which orders they run, how they fail. */
@Timeout(300) // one of them takes half a minute of a processor
class SimulatedKernelTest {
  private static final int SEEDS = 300;
  private static final AtomicInteger NAMES = new AtomicInteger();

  private final List<SimulatedKernels.Registered> registered = new ArrayList<>();
  private final List<SimulatedDriver> drivers = new ArrayList<>();
  private SimulatedDriver driver = open(0);

  @AfterEach
  void close() {
    drivers.forEach(SimulatedDriver::close);
    registered.forEach(SimulatedKernels.Registered::close);
  }

  private SimulatedDriver open(long seed) {
    SimulatedDriver opened = SimulatedDriver.open(SimulatedOptions.parse("seed=" + seed));
    drivers.add(opened);
    return opened;
  }

  /** A kernel with two parameters, an address and a number, under a name of its own. */
  private SimulatedKernel kernel(KernelFunction function) {
    SimulatedKernel made =
        SimulatedKernel.of("test" + NAMES.incrementAndGet(), function, POINTER, INT);
    registered.add(SimulatedKernels.register(made));
    return made;
  }

  private long find(SimulatedKernel kernel) {
    long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(kernel)));
    return driver.kernels().libraryGetKernel(library, kernel.name());
  }

  private static LaunchShape shape(int blocks, int threads) {
    return new LaunchShape(blocks, 1, 1, threads, 1, 1, 1, 1, 1, 0, false, false);
  }

  private static LaunchShape cooperative(int blocks, int threads) {
    return new LaunchShape(blocks, 1, 1, threads, 1, 1, 1, 1, 1, 0, true, false);
  }

  private static LaunchShape clusters(int blocks, int threads, int cluster) {
    return new LaunchShape(blocks, 1, 1, threads, 1, 1, cluster, 1, 1, 0, false, false);
  }

  private static LaunchParameters arguments(long address, int number) {
    MemorySegment values = Arena.ofAuto().allocate(16, 8);
    values.set(JAVA_LONG, 0, address);
    values.set(JAVA_INT, 8, number);
    return new LaunchParameters(
        values, List.of(new KernelParameter(0, 8), new KernelParameter(8, 4)));
  }

  private void launch(SimulatedKernel kernel, LaunchShape shape, long address, int number) {
    driver.kernels().launchKernel(0, 0, find(kernel), shape, arguments(address, number));
  }

  /** Launches a kernel on memory of zeros, and gives what is there then. */
  private int[] run(SimulatedKernel kernel, LaunchShape shape, int count) {
    long memory = driver.memory().memAlloc(0, count * 4L);
    driver.transfers().memsetD32Async(0, memory, 0, count, 0);
    launch(kernel, shape, memory, count);
    MemorySegment result = Arena.ofAuto().allocate(JAVA_INT, count);
    driver.transfers().memcpyDtoHAsync(0, result, memory, 0);
    driver.streams().streamSynchronize(0, 0);
    driver.memory().memFree(0, memory);
    return result.toArray(JAVA_INT);
  }

  private static void assertFails(CudaStatus status, String text, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.status()).as(e.getMessage()).isEqualTo(status))
        .hasMessageContaining(text);
  }

  private void assertLaunchFails(
      CudaStatus status, String text, KernelFunction function, LaunchShape shape) {
    SimulatedKernel kernel = kernel(function);
    assertFails(status, text, () -> run(kernel, shape, 64));
    driver = open(0);
  }

  @Test
  void everyThreadOfEveryBlock_runsOnce() {
    SimulatedKernel kernel =
        kernel(t -> {
          int index = (int) t.globalX();
          if (index < t.intValue(1)) {
            t.setInt(t.pointer(0) + index * 4L, t.getInt(t.pointer(0) + index * 4L) + index + 1);
          }
        });
    int[] result = run(kernel, shape(8, 128), 1000);
    assertThat(result).hasSize(1000);
    for (int i = 0; i < result.length; i++) {
      assertThat(result[i]).isEqualTo(i + 1);
    }
  }

  @Test
  void indices_areThoseOfThreeDimensions() {
    SimulatedKernel kernel =
        kernel(t -> {
          int thread = (t.threadZ() * t.blockDimY() + t.threadY()) * t.blockDimX() + t.threadX();
          int block = (t.blockZ() * t.gridDimY() + t.blockY()) * t.gridDimX() + t.blockX();
          int size = t.blockDimX() * t.blockDimY() * t.blockDimZ();
          int ok = thread == t.rank() && size == 24 && t.gridDimZ() == 3 ? 1 : 100;
          int unused = t.atomicAdd(t.pointer(0) + (block * size + thread) * 4L, ok);
          assertThat(unused).isZero();
        });
    LaunchShape shape = new LaunchShape(2, 1, 3, 4, 3, 2, 1, 1, 1, 0, false, false);
    assertThat(run(kernel, shape, 6 * 24)).containsOnly(1);
  }

  /** Adds up one number of each thread in shared memory; what is missing is the barrier. */
  private static KernelFunction sum(boolean withBarriers) {
    return t -> {
      MemorySegment shared = t.shared();
      shared.setAtIndex(JAVA_INT, t.rank(), t.rank());
      for (int half = t.blockDimX() / 2; half > 0; half /= 2) {
        if (withBarriers) {
          t.syncThreads();
        }
        if (t.rank() < half) {
          shared.setAtIndex(
              JAVA_INT,
              t.rank(),
              shared.getAtIndex(JAVA_INT, t.rank()) + shared.getAtIndex(JAVA_INT, t.rank() + half));
        }
      }
      if (t.rank() == 0) {
        t.setInt(t.pointer(0) + 4L * t.blockX(), shared.getAtIndex(JAVA_INT, 0));
      }
    };
  }

  private long seedsWhere(KernelFunction function, LaunchShape shape, LongPredicate isRight) {
    SimulatedKernel kernel = kernel(function);
    return LongStream.range(0, SEEDS)
        .filter(seed -> {
          driver = open(seed);
          return isRight.test(run(kernel, shape, 4)[0]);
        })
        .count();
  }

  @Test
  void missingBarrier_isFound_andOneThatIsThere_isRight() {
    LaunchShape shape = new LaunchShape(1, 1, 1, 64, 1, 1, 1, 1, 1, 256, false, false);
    assertThat(seedsWhere(sum(true), shape, sum -> sum == 63 * 64 / 2)).isEqualTo(SEEDS);
    assertThat(seedsWhere(sum(false), shape, sum -> sum == 63 * 64 / 2)).isLessThan(SEEDS / 20);
  }

  @Test
  void updateThatShouldBeAtomic_isFound() {
    KernelFunction plain = t -> t.setInt(t.pointer(0), t.getInt(t.pointer(0)) + 1);
    KernelFunction atomic = t -> t.atomicAdd(t.pointer(0), 1);
    assertThat(seedsWhere(atomic, shape(1, 128), count -> count == 128)).isEqualTo(SEEDS);
    assertThat(seedsWhere(plain, shape(1, 128), count -> count == 128)).isLessThan(SEEDS / 2);
  }

  @Test
  void orderOfBlocks_isOfTheSeed_andTheSameAgain() {
    SimulatedKernel last = kernel(t -> t.setInt(t.pointer(0), t.blockX() + 1));
    List<Integer> ends = new ArrayList<>();
    for (long seed : new long[] {1, 2, 3, 4, 5, 6, 7, 8, 1}) {
      driver = open(seed);
      ends.add(run(last, shape(10, 1), 1)[0]);
    }
    assertThat(ends.getFirst()).isEqualTo(ends.getLast());
    assertThat(ends.stream().distinct()).hasSizeGreaterThan(3);
  }

  @Test
  void barrierThatSomeNeverReach_isReported() {
    assertLaunchFails(
        LAUNCH_FAILED,
        "threads ended without syncThreads",
        t -> {
          if (t.rank() % 2 == 0) {
            t.syncThreads();
          }
        },
        shape(2, 32));
    assertLaunchFails(
        LAUNCH_FAILED,
        "no thread can go on",
        t -> {
          if (t.rank() == 0) {
            t.syncCluster();
          } else {
            t.syncThreads();
          }
        },
        clusters(2, 4, 2));
  }

  @Test
  void wrongAddresses_loseTheDevice() {
    assertLaunchFails(
        ILLEGAL_ADDRESS, "thread (", t -> t.setInt(t.pointer(0) + 256, 1), shape(1, 8));
    assertLaunchFails(ILLEGAL_ADDRESS, "0x0", t -> t.getInt(0), shape(1, 1));
    assertLaunchFails(
        MISALIGNED_ADDRESS, "multiple of 8", t -> t.getLong(t.pointer(0) + 4), shape(1, 1));
    SimulatedKernel good = kernel(t -> t.setInt(t.pointer(0), 1));
    long freed = driver.memory().memAlloc(0, 4);
    driver.memory().memFree(0, freed);
    launch(good, shape(1, 1), freed, 1);
    assertFails(ILLEGAL_ADDRESS, "", () -> driver.streams().streamSynchronize(0, 0));
    assertFails(ILLEGAL_ADDRESS, "", () -> driver.memory().memAlloc(0, 4));
  }

  @Test
  void exceptions_failTheLaunch() {
    assertLaunchFails(
        LAUNCH_FAILED,
        "block (1, 0, 0), thread (3, 0, 0): java.lang.IllegalStateException: on purpose",
        t -> {
          t.syncThreads();
          if (t.globalX() == 7) {
            throw new IllegalStateException("on purpose");
          }
          t.syncThreads();
        },
        shape(2, 4));
    assertLaunchFails(LAUNCH_FAILED, "parameter 2 (expected", t -> t.pointer(2), shape(1, 1));
    assertLaunchFails(
        LAUNCH_FAILED, "parameter 1 read as 8 bytes", t -> t.longValue(1), shape(1, 1));
    assertLaunchFails(LAUNCH_FAILED, "not cooperative", KernelThread::syncGrid, shape(1, 1));
    SimulatedDriver inside = driver;
    assertLaunchFails(
        LAUNCH_FAILED,
        "kernels must not call the driver",
        _ -> inside.memory().memAlloc(0, 4),
        shape(1, 1));
  }

  @Test
  void threadThatSwallowsTheFailureOfAnother_ends() {
    assertLaunchFails(
        LAUNCH_FAILED,
        "on purpose",
        t -> {
          if (t.rank() == 5) {
            throw new IllegalStateException("on purpose");
          }
          try {
            t.syncThreads();
          } catch (RuntimeException e) {
            t.setInt(t.pointer(0), 1);
          }
        },
        shape(1, 32));
  }

  @Test
  void threadsThatWaitForEachOther_goOn_ifTheyAreResident() {
    SimulatedKernel lock =
        kernel(t -> {
          while (t.atomicCas(t.pointer(0), 0, 1) != 0) {
            Thread.onSpinWait();
          }
          t.setInt(t.pointer(0) + 4, t.getInt(t.pointer(0) + 4) + 1);
          t.setInt(t.pointer(0), 0);
        });
    for (long seed = 0; seed < 20; seed++) {
      driver = open(seed);
      assertThat(run(lock, shape(4, 32), 2)[1]).isEqualTo(4 * 32);
    }
    assertLaunchFails(
        LAUNCH_TIMEOUT,
        " held 5 at 4194304 looks in a row",
        t -> {
          t.setInt(t.pointer(0), 5);
          while (t.getInt(t.pointer(0)) == 5) {
            Thread.onSpinWait();
          }
        },
        shape(1, 2));
  }

  @Test
  void clusters_seeTheSharedMemoryOfTheirBlocks() {
    SimulatedKernel kernel =
        kernel(
                t -> {
                  t.shared().set(JAVA_INT, 0, t.blockX());
                  t.syncCluster();
                  int next = (t.clusterRank() + 1) % t.clusterSize();
                  t.setInt(t.pointer(0) + 4L * t.blockX(), t.shared(next).get(JAVA_INT, 0));
                  t.syncCluster();
                })
            .withSharedBytes(4);
    registered.forEach(SimulatedKernels.Registered::close);
    registered.add(SimulatedKernels.register(kernel));
    assertThat(run(kernel, clusters(6, 1, 3), 6)).containsExactly(1, 2, 0, 4, 5, 3);
  }

  @Test
  void blocksOfClusters_haveEveryPlaceOnce_besideTheOthersOfTheirCluster() {
    LaunchShape shape = new LaunchShape(4, 4, 6, 1, 1, 1, 2, 2, 2, 0, false, false);
    SimulatedKernel kernel =
        kernel(t -> {
          int place = (t.blockZ() * 4 + t.blockY()) * 4 + t.blockX();
          int _ = t.atomicAdd(t.pointer(0) + 4L * place, 1 + t.clusterRank());
        });
    int[] ranks =
        IntStream.range(0, 96).map(i -> 1 + i % 2 + i / 4 % 2 * 2 + i / 16 % 2 * 4).toArray();
    assertThat(run(kernel, shape, 96)).isEqualTo(ranks);
  }

  @Test
  void gridSync_waitsForAllBlocks() {
    SimulatedKernel kernel =
        kernel(t -> {
          int unused = t.atomicAdd(t.pointer(0), 1);
          t.syncGrid();
          t.setInt(t.pointer(0) + 4L + 4L * t.globalX(), t.getInt(t.pointer(0)));
        });
    int[] seen = run(kernel, cooperative(4, 8), 33);
    assertThat(seen).containsOnly(32);
  }

  @Test
  void shapesThatNoDeviceRuns_areRefusedAtOnce() {
    SimulatedKernel kernel = kernel(_ -> {});
    long memory = driver.memory().memAlloc(0, 4);
    assertFails(INVALID_VALUE, "gridX: 0", () -> launch(kernel, shape(0, 1), memory, 1));
    assertFails(
        INVALID_VALUE, "gridX: -2147483648", () -> launch(kernel, shape(1 << 31, 1), memory, 1));
    assertFails(INVALID_VALUE, "blockX: 1025", () -> launch(kernel, shape(1, 1025), memory, 1));
    assertFails(
        INVALID_CLUSTER_SIZE, "multiple of 4", () -> launch(kernel, clusters(6, 1, 4), memory, 1));
    assertFails(INVALID_CLUSTER_SIZE, "<= 8", () -> launch(kernel, clusters(16, 1, 16), memory, 1));
    assertFails(
        COOPERATIVE_LAUNCH_TOO_LARGE,
        "<= 264",
        () -> launch(kernel, cooperative(265, 1024), memory, 1));
    assertFails(
        INVALID_VALUE,
        "0 to 49152",
        () ->
            launch(
                kernel,
                new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 49_153, false, false),
                memory,
                1));
    driver.streams().streamSynchronize(0, 0);
  }

  @Test
  void sharedMemoryAboveTheUsual_needsTheAttribute() {
    SimulatedKernel kernel = kernel(t -> t.setInt(t.pointer(0), (int) t.shared().byteSize()));
    long found = find(kernel);
    LaunchShape large = new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 100_000, false, false);
    driver.kernels().kernelSetAttribute(8, 100_000, found, 0);
    assertThat(driver.kernels().kernelGetAttribute(8, found, 0)).isEqualTo(100_000);
    long memory = driver.memory().memAlloc(0, 4);
    driver.kernels().launchKernel(0, 0, found, large, arguments(memory, 0));
    driver.streams().streamSynchronize(0, 0);
    assertFails(
        INVALID_VALUE,
        "0 to 232448",
        () -> driver.kernels().kernelSetAttribute(8, 232_449, found, 0));
  }

  @Test
  void attributesOfAKernel_haveNumbersFrom0To15() {
    long found = find(kernel(_ -> {}));
    assertThat(driver.kernels().kernelGetAttribute(15, found, 0)).isZero();
    for (int none : new int[] {-1, 16}) {
      assertFails(
          INVALID_VALUE,
          "attribute: %d (expected: 0 to 15)".formatted(none),
          () -> driver.kernels().kernelGetAttribute(none, found, 0));
      assertFails(
          INVALID_VALUE,
          "attribute: %d (expected: 0 to 15)".formatted(none),
          () -> driver.kernels().kernelSetAttribute(none, 1, found, 0));
    }
  }

  @Test
  void kernelWithoutFunction_orWithOtherParameters_isExplained() {
    SimulatedKernel known = kernel(_ -> {});
    SimulatedKernel unknown = SimulatedKernel.of("nobodyHasIt", _ -> {}, POINTER, INT);
    assertFails(
        NOT_FOUND, "kernel nobodyHasIt has no Java", () -> launch(unknown, shape(1, 1), 0, 1));
    SimulatedKernel other = SimulatedKernel.of(known.name(), _ -> {}, INT, POINTER);
    assertFails(INVALID_VALUE, "pointer of 8 bytes", () -> launch(other, shape(1, 1), 0, 1));
    assertThatThrownBy(() -> SimulatedKernels.register(other))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining(
            "%s[pointer of 8 bytes, int of 4 bytes] is registered already".formatted(known.name()));
  }

  @Test
  void argumentsAreThoseOfTheLaunch_alsoInAGraph() {
    SimulatedKernel kernel = kernel(t -> t.atomicAdd(t.pointer(0), t.intValue(1)));
    long memory = driver.memory().memAlloc(0, 4);
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    driver.transfers().memsetD32Async(0, memory, 0, 1, stream);
    LaunchParameters arguments = arguments(memory, 5);
    long found = find(kernel);
    driver.captures().streamBeginCapture(0, stream, 2);
    driver.kernels().launchKernel(0, stream, found, shape(1, 3), arguments);
    long graph = driver.captures().streamEndCapture(0, stream);
    arguments.values().set(JAVA_INT, 8, 1_000_000);
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    driver.graphs().graphLaunch(0, executable, stream);
    driver.graphs().graphLaunch(0, executable, stream);
    MemorySegment result = Arena.ofAuto().allocate(JAVA_INT);
    driver.transfers().memcpyDtoHAsync(0, result, memory, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(result.get(JAVA_INT, 0)).isEqualTo(2 * 3 * 5);
  }

  @Test
  void virtualThreadsAndInterrupts_doNoHarm() throws InterruptedException {
    SimulatedKernel kernel = kernel(sum(true)).withSharedBytes(256);
    registered.forEach(SimulatedKernels.Registered::close);
    registered.add(SimulatedKernels.register(kernel));
    List<Throwable> failures = new ArrayList<>();
    Thread thread =
        Thread.ofVirtual()
            .unstarted(() -> {
              Thread.currentThread().interrupt();
              for (int i = 0; i < 50; i++) {
                if (run(kernel, shape(1, 64), 4)[0] != 63 * 64 / 2
                    || !Thread.currentThread().isInterrupted()) {
                  failures.add(new AssertionError("round " + i));
                }
              }
            });
    thread.setUncaughtExceptionHandler((_, e) -> failures.add(e));
    thread.start();
    thread.join();
    assertThat(failures).isEmpty();
  }

  @Test
  void occupancy_isThatOfAnH200() {
    long found = find(kernel(_ -> {}));
    assertThat(driver.kernels().occupancyMaxActiveBlocksPerMultiprocessor(0, found, 256, 0))
        .isEqualTo(8);
    assertThat(driver.kernels().occupancyMaxActiveBlocksPerMultiprocessor(0, found, 32, 100_000))
        .isEqualTo(2);
    assertThat(driver.kernels().occupancyMaxPotentialBlockSize(0, found, 0, 0).minGridBlocks())
        .isEqualTo(264);
    assertThat(driver.kernels().occupancyAvailableDynamicSMemPerBlock(0, found, 2, 256))
        .isEqualTo(115_712);
    assertThat(driver.kernels().occupancyMaxActiveClusters(0, found, clusters(8, 1024, 4)))
        .isEqualTo(66);
    assertThat(driver.kernels().occupancyMaxPotentialClusterSize(0, found, shape(8, 32)))
        .isEqualTo(8);
  }
}

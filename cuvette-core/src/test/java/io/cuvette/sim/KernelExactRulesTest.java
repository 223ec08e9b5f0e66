package io.cuvette.sim;

import static io.cuvette.sim.SimulatedParameter.POINTER;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.MemoryInfo;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What kernels of one block, one cluster or one more piece of memory do as all others. */
@Timeout(60)
class KernelExactRulesTest extends SimTestBase {
  private static final AtomicInteger NAMES = new AtomicInteger();
  private static final LaunchShape ONE = shape(1, 1, 0);

  /** So many looks in a row that find the same are a wait in vain. */
  private static final int MOST_LOOKS = 1 << 22;

  private final List<SimulatedKernels.Registered> registered = new ArrayList<>();

  @AfterEach
  void unregister() {
    registered.forEach(SimulatedKernels.Registered::close);
  }

  private static LaunchShape shape(int blocks, int threads, int shared) {
    return new LaunchShape(blocks, 1, 1, threads, 1, 1, 1, 1, 1, shared, false, false);
  }

  private long find(SimulatedDriver on, KernelFunction function) {
    SimulatedKernel made = SimulatedKernel.of("exact" + NAMES.incrementAndGet(), function, POINTER);
    registered.add(SimulatedKernels.register(made));
    long library = on.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(made)));
    return on.kernels().libraryGetKernel(library, made.name());
  }

  private void run(SimulatedDriver on, KernelFunction function, LaunchShape shape, long address) {
    MemorySegment values = Arena.ofAuto().allocate(JAVA_LONG);
    values.set(JAVA_LONG, 0, address);
    LaunchParameters arguments = new LaunchParameters(values, List.of(new KernelParameter(0, 8)));
    on.kernels().launchKernel(0, 0, find(on, function), shape, arguments);
    on.streams().streamSynchronize(0, 0);
  }

  @Test
  void functionOfAGrid_isCalledOnce_forAnyNumbersOfBlocksAndThreads() {
    for (int[] each : new int[][] {{1, 1}, {1, 2}, {2, 1}, {1, 64}, {3, 32}}) {
      AtomicInteger calls = new AtomicInteger();
      GridFunction function = _ -> calls.incrementAndGet();
      run(driver, function, shape(each[0], each[1], 0), 0);
      assertThat(calls).as("%d blocks of %d threads", each[0], each[1]).hasValue(1);
    }
  }

  /** As where the host takes what a kernel gives it, again and again. */
  @Test
  void updatesThatChangeSomething_areNoLooks_thoughEachFindsTheSame() {
    MemorySegment pinned = driver.memory().memHostAlloc(0, 16, 0);
    pinned.fill((byte) 0);
    long address = pinned.address();
    KernelFunction function =
        thread -> {
          for (int i = 0; i <= MOST_LOOKS + 1; i++) {
            int _ = thread.atomicUpdate(address, old -> old + 1);
            pinned.set(JAVA_INT, 0, 0);
          }
          for (int i = 0; i <= MOST_LOOKS + 1; i++) {
            long _ = thread.atomicUpdateLong(address + 8, old -> old + 1);
            pinned.set(JAVA_LONG, 8, 0);
          }
          thread.setInt(address, 7);
        };
    run(driver, function, shape(1, 1, 0), address);
    assertThat(pinned.get(JAVA_INT, 0)).isEqualTo(7);
  }

  @Test
  void blocks_comeNotOnlyInTheOrderOfTheirNumbers() {
    int others = 0;
    for (int seed = 1; seed <= 20; seed++) {
      List<Integer> blocks = new ArrayList<>();
      try (SimulatedDriver own = SimulatedDriver.open(SimulatedOptions.DEFAULTS.withSeed(seed))) {
        run(own, thread -> blocks.add(thread.blockX()), shape(7, 1, 0), 0);
      }
      assertThat(blocks).containsExactlyInAnyOrder(0, 1, 2, 3, 4, 5, 6);
      others += (blocks.get(0) + 1) % 7 == blocks.get(1) ? 0 : 1;
    }
    assertThat(others).isGreaterThan(5);
  }

  @Test
  void questionsAboutTheDriver_areRefusedInAKernel() {
    AtomicReference<Throwable> refused = new AtomicReference<>();
    run(
        driver,
        _ -> {
          try {
            int _ = driver.liveGraphs();
          } catch (IllegalStateException e) {
            refused.set(e);
          }
        },
        ONE,
        0);
    assertThat(refused.get()).hasMessageContaining("kernels must not call the driver");
  }

  @Test
  void changeOfALong_usesNoMemoryItself() {
    long memory = driver.memory().memAlloc(0, 16);
    write(memory, new byte[16]);
    AtomicInteger refused = new AtomicInteger();
    run(
        driver,
        thread -> {
          long _ =
              thread.atomicUpdateLong(
                  memory,
                  old -> {
                    assertThatIllegalStateException()
                        .isThrownBy(() -> thread.getLong(memory + 8))
                        .withMessageStartingWith(
                            thread + " uses memory or a barrier in an atomic update");
                    return old + refused.incrementAndGet();
                  });
        },
        ONE,
        memory);
    assertThat(refused).hasValue(1);
    assertThat(read(memory, 1)).containsExactly(1);
  }

  @Test
  void threadThatHasEnded_isRefusedForEver_andHarmsNoOther() {
    int often = 2_000;
    AtomicReference<KernelThread> first = new AtomicReference<>();
    AtomicInteger refused = new AtomicInteger();
    run(
        driver,
        thread -> {
          if (!first.compareAndSet(null, thread)) {
            for (int i = 0; i < often; i++) {
              try {
                first.get().syncThreads();
              } catch (IllegalStateException _) {
                int _ = refused.incrementAndGet();
              }
            }
          }
        },
        shape(1, 2, 0),
        0);
    assertThat(refused).hasValue(often);
  }

  @Test
  void threadThatWasGivenUp_isRefusedForEver_butStopsNoOtherJavaThread()
      throws InterruptedException {
    int often = 2_000;
    AtomicReference<KernelThread> givenUp = new AtomicReference<>();
    SimulatedKernel kernel =
        SimulatedKernel.of(
                "exact" + NAMES.incrementAndGet(),
                thread -> {
                  givenUp.set(thread);
                  while (!Thread.interrupted()) {
                    LockSupport.park();
                  }
                })
            .withPatience(Duration.ofMillis(20));
    registered.add(SimulatedKernels.register(kernel));
    long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(kernel)));
    long handle = driver.kernels().libraryGetKernel(library, kernel.name());
    LaunchParameters none = new LaunchParameters(MemorySegment.NULL, List.of());
    assertFails(
        CudaStatus.LAUNCH_TIMEOUT,
        "its function has waited",
        () -> {
          driver.kernels().launchKernel(0, 0, handle, ONE, none);
          driver.streams().streamSynchronize(0, 0);
        });
    AtomicInteger refused = new AtomicInteger();
    Thread other =
        Thread.ofVirtual()
            .start(() -> {
              for (int i = 0; i < often; i++) {
                try {
                  givenUp.get().syncThreads();
                } catch (IllegalStateException _) {
                  int _ = refused.incrementAndGet();
                }
              }
            });
    assertThat(other.join(Duration.ofSeconds(30))).isTrue();
    assertThat(refused).hasValue(often);
  }

  @Test
  void barrierThatSomeThreadDoesNotReach_isNamed_whoeverComesFirst() {
    for (int seed = 1; seed <= 8; seed++) {
      try (SimulatedDriver own = SimulatedDriver.open(SimulatedOptions.DEFAULTS.withSeed(seed))) {
        KernelFunction function =
            thread -> {
              if (thread.rank() == 0) {
                thread.syncThreads();
              }
            };
        assertFails(
            CudaStatus.LAUNCH_FAILED,
            "1 of 2 threads ended without syncThreads, where 1 wait",
            () -> run(own, function, shape(1, 2, 0), 0));
      }
    }
  }

  @Test
  void managedMemoryThatAKernelReadsInOnePiece_isOnTheDevice() {
    long page = 2 * MIB;
    MemorySegment managed = driver.memory().memAllocManaged(0, 4 * page, 1);
    managed.fill((byte) 7);
    MemoryInfo before = driver.devices().memGetInfo(0);
    byte[] got = new byte[(int) (3 * page)];
    MemorySegment target = MemorySegment.ofArray(got);
    run(driver, thread -> thread.getBytes(managed.address() + 8, target), ONE, 0);
    assertThat(got).containsOnly(7);
    assertThat(before.freeBytes() - driver.devices().memGetInfo(0).freeBytes()).isEqualTo(4 * page);
  }

  @Test
  void sizesOfClusters_haveALimit_andNoneFitsWhereNoBlockDoes() {
    long kernel = find(driver, _ -> {});
    var kernels = driver.kernels();
    for (int attribute : new int[] {11, 12, 13}) {
      kernels.kernelSetAttribute(attribute, 16, kernel, 0);
      kernels.kernelSetAttribute(attribute, 0, kernel, 0);
      for (int wrong : new int[] {-1, 17}) {
        assertFails(
            CudaStatus.INVALID_VALUE,
            "value: %d (expected: 0 to 16)".formatted(wrong),
            () -> kernels.kernelSetAttribute(attribute, wrong, kernel, 0));
      }
    }
    assertThat(kernels.occupancyMaxPotentialClusterSize(0, kernel, ONE)).isEqualTo(8);
    assertThat(kernels.occupancyMaxPotentialClusterSize(0, kernel, shape(1, 1, 1 << 18))).isZero();
  }

  @Test
  void kernelWithoutAListOfParameters_hasNone() {
    String code = ".version 8.0\n.target sm_75\n.entry bare {} .entry empty( ) {} .entry none(){}";
    long library = driver.kernels().libraryLoadData(code.getBytes(StandardCharsets.US_ASCII));
    assertThat(driver.kernels().libraryGetKernelCount(library)).isEqualTo(3);
    for (String name : new String[] {"bare", "empty", "none"}) {
      long kernel = driver.kernels().libraryGetKernel(library, name);
      assertFails(
          CudaStatus.INVALID_VALUE, "", () -> driver.kernels().kernelGetParamInfo(kernel, 0));
    }
  }

  @Test
  void typeOfAParameter_hasItsName() {
    assertThat(new SimulatedParameter("half", 2, 2).name()).isEqualTo("half");
    assertThat(SimulatedParameter.struct(3, 1).name()).isEqualTo("struct");
  }

  @Test
  void ofManyBarriersThatAreWaitedAt_threeAreNamed() {
    LaunchShape together = new LaunchShape(8, 1, 1, 2, 1, 1, 1, 1, 1, 0, true, false);
    KernelFunction function =
        t -> {
          if (t.threadX() == 0) {
            t.syncThreads();
          } else {
            t.syncGrid();
          }
        };
    assertThatThrownBy(() -> run(driver, function, together, 0))
        .hasMessageContaining("no thread can go on: ")
        .satisfies(e -> assertThat(e.getMessage().split(" threads wait at ", -1)).hasSize(1 + 3));
  }
}

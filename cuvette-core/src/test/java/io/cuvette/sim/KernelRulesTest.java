package io.cuvette.sim;

import static io.cuvette.sim.SimulatedParameter.POINTER;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Turns, barriers and interrupts of the threads of a kernel, under many seeds. */
@Timeout(60)
class KernelRulesTest {
  private static final AtomicInteger NAMES = new AtomicInteger();
  private static final int SEEDS = 5;

  private record Sync(String name, int threads, KernelFunction function) {}

  /** Two clusters of two blocks with four threads each. */
  private static final LaunchShape ALL_TOGETHER =
      new LaunchShape(4, 1, 1, 4, 1, 1, 2, 1, 1, 0, true, false);

  private static final List<Sync> BARRIERS =
      List.of(
          new Sync("syncThreads", 4, KernelThread::syncThreads),
          new Sync("syncCluster", 8, KernelThread::syncCluster),
          new Sync("syncGrid", 16, KernelThread::syncGrid));

  private static SimulatedKernel kernel(KernelFunction function) {
    return SimulatedKernel.of("rules" + NAMES.incrementAndGet(), function, POINTER);
  }

  private static LaunchShape threads(int threads) {
    return new LaunchShape(1, 1, 1, threads, 1, 1, 1, 1, 1, 0, false, false);
  }

  private static SimulatedDriver open(long seed) {
    return SimulatedDriver.open(SimulatedOptions.DEFAULTS.withSeed(seed));
  }

  /** Runs a kernel with 64 bytes of zeros; gives the first of them as a number. */
  private static int run(SimulatedDriver driver, SimulatedKernel kernel, LaunchShape shape) {
    long memory = driver.memory().memAlloc(0, 64);
    driver.transfers().memsetD32Async(0, memory, 0, 16, 0);
    MemorySegment values = Arena.ofAuto().allocate(JAVA_LONG);
    values.set(JAVA_LONG, 0, memory);
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(kernel)) {
      long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(kernel)));
      long handle = driver.kernels().libraryGetKernel(library, kernel.name());
      LaunchParameters parameters =
          new LaunchParameters(values, List.of(new KernelParameter(0, 8)));
      driver.kernels().launchKernel(0, 0, handle, shape, parameters);
      MemorySegment result = Arena.ofAuto().allocate(JAVA_INT);
      driver.transfers().memcpyDtoHAsync(0, result, memory, 0);
      driver.streams().streamSynchronize(0, 0);
      return result.get(JAVA_INT, 0);
    }
  }

  private static int run(long seed, SimulatedKernel kernel, LaunchShape shape) {
    try (SimulatedDriver driver = open(seed)) {
      return run(driver, kernel, shape);
    }
  }

  private static void assertFails(
      long seed, SimulatedKernel kernel, LaunchShape shape, String pattern) {
    Throwable failed = catchThrowable(() -> run(seed, kernel, shape));
    assertThat(failed).as("seed %d", seed).hasMessageMatching("(?s).*" + pattern + ".*");
  }

  @Test
  void barrierThatAThreadNeverReaches_isNamed_whicheverEndsOrComesFirst() {
    for (Sync sync : BARRIERS) {
      SimulatedKernel kernel =
          kernel(t -> {
            if (t.globalX() != 2) {
              sync.function.run(t);
            }
          });
      for (int seed = 0; seed < SEEDS; seed++) {
        assertFails(
            seed,
            kernel,
            ALL_TOGETHER,
            "1 of %d threads ended without %s, where [0-9]+ wait"
                .formatted(sync.threads, sync.name));
      }
    }
  }

  @Test
  void threadsThatWaitAtDifferentBarriers_areNamedWithThem() {
    LaunchShape alone = new LaunchShape(1, 1, 1, 4, 1, 1, 1, 1, 1, 0, true, false);
    for (Sync one : BARRIERS) {
      for (Sync other : BARRIERS) {
        if (one != other) {
          SimulatedKernel kernel = kernel(t -> (t.globalX() == 2 ? one : other).function.run(t));
          for (String each :
              List.of(
                  "1 of 4 threads wait at " + one.name, "3 of 4 threads wait at " + other.name)) {
            assertFails(1, kernel, alone, "no thread can go on: .*" + each);
          }
        }
      }
    }
  }

  /** What is behind a barrier that not all have reached is done by nobody. */
  @Test
  void failureOfAThread_letsNobodyPastABarrier() {
    for (Sync sync : BARRIERS) {
      AtomicInteger behind = new AtomicInteger();
      SimulatedKernel kernel =
          kernel(t -> {
            if (t.globalX() == 2) {
              throw new IllegalStateException("the second");
            }
            sync.function.run(t);
            if (t.globalX() < sync.threads) {
              int _ = behind.incrementAndGet();
            }
          });
      for (int seed = 0; seed < SEEDS; seed++) {
        assertFails(seed, kernel, ALL_TOGETHER, "the second");
      }
      assertThat(behind).as(sync.name).hasValue(0);
    }
  }

  @Test
  void threadThatGoesOnAfterARefusal_isRefusedAtEveryBarrierToo() {
    for (Sync sync : BARRIERS) {
      AtomicInteger refused = new AtomicInteger();
      AtomicInteger again = new AtomicInteger();
      SimulatedKernel kernel =
          kernel(t -> {
            try {
              t.setInt(64, 1);
            } catch (RuntimeException _) {
              int _ = refused.incrementAndGet();
              for (int i = 0; i < 3; i++) {
                try {
                  sync.function.run(t);
                } catch (RuntimeException _) {
                  int _ = again.incrementAndGet();
                }
              }
            }
          });
      for (int seed = 0; seed < SEEDS; seed++) {
        assertFails(seed, kernel, ALL_TOGETHER, "0x40");
      }
      assertThat(refused).hasPositiveValue();
      assertThat(again).as(sync.name).hasValue(3 * refused.get());
    }
  }

  /** A race shows itself with some seed, and again with the same one. */
  @Test
  void threadsAreInterruptedAtTheirAccesses_asTheSeedSays() {
    int each = 60;
    SimulatedKernel racing =
        kernel(t -> {
          for (int i = 0; i < each; i++) {
            t.setInt(t.pointer(0), t.getInt(t.pointer(0)) + 1);
          }
        });
    Set<Integer> results = new HashSet<>();
    for (int seed = 0; seed < 12; seed++) {
      int result = run(seed, racing, threads(4));
      assertThat(run(seed, racing, threads(4))).as("seed %d again", seed).isEqualTo(result);
      results.add(result);
    }
    assertThat(results).hasSizeGreaterThan(2).allMatch(sum -> sum >= 2 && sum <= 4 * each);
    SimulatedKernel careful =
        kernel(t -> {
          for (int i = 0; i < each; i++) {
            int _ = t.atomicAdd(t.pointer(0), 1);
          }
        });
    assertThat(run(1, careful, threads(4))).isEqualTo(4 * each);
  }

  /** Whatever the seed, and some seeds do so as often as they may. */
  @Test
  void threadsAreInterrupted_sixTimesAtMost() {
    int threads = 16;
    int[] last = {-1};
    int[] turns = {0};
    SimulatedKernel kernel =
        kernel(t -> {
          for (int i = 0; i < 250; i++) {
            if (last[0] != t.threadX()) {
              last[0] = t.threadX();
              turns[0]++;
            }
            t.setInt(t.pointer(0), 1);
          }
        });
    int most = 0;
    for (int seed = 0; seed < 100; seed++) {
      last[0] = -1;
      turns[0] = -threads;
      int _ = run(seed, kernel, threads(threads));
      most = Math.max(most, turns[0]);
    }
    assertThat(most).isEqualTo(6);
  }

  /** Others get their turn even beside one that never waits, behind as many accesses each time. */
  @Test
  void turnOfAThread_endsAfterSoManyAccesses() {
    int longest = 1 << 16;
    List<Integer> turns = new ArrayList<>();
    int[] last = {-1};
    int[] accesses = {0};
    AtomicInteger ended = new AtomicInteger();
    SimulatedKernel kernel =
        kernel(t -> {
          for (int i = 0; i < 6 * longest; i++) {
            if (last[0] != t.threadX()) {
              last[0] = t.threadX();
              if (ended.get() == 0) {
                turns.add(accesses[0]);
              }
              accesses[0] = 0;
            }
            accesses[0]++;
            t.setInt(t.pointer(0), 1);
          }
          int _ = ended.incrementAndGet();
        });
    int _ = run(1, kernel, threads(2));
    List<Integer> interrupted = turns.stream().dropWhile(turn -> turn < longest).skip(1).toList();
    assertThat(interrupted).isNotEmpty().allMatch(turn -> turn % longest == 0);
  }

  /** Looks at several addresses in turn do not tell that a thread waits; others go on anyway. */
  @Test
  void threadThatLooksForAnotherInManyPlaces_letsItGoOn() {
    int rounds = 10;
    SimulatedKernel kernel =
        kernel(t -> {
          for (int round = t.threadX(); round < rounds; round += 2) {
            int sum = 0;
            while (t.getInt(t.pointer(0)) != round) {
              sum += t.getInt(t.pointer(0) + 4) + t.getInt(t.pointer(0) + 8);
            }
            t.setInt(t.pointer(0), round + 1 + sum);
          }
        });
    assertThat(run(2, kernel, threads(2))).isEqualTo(rounds);
  }

  @Test
  void interruptOfWhoRunsAKernel_isKept_andNoneIsMade() {
    for (String pace : List.of("lazy", "eager")) {
      try (SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.parse("pace=" + pace))) {
        Thread caller = Thread.currentThread();
        for (boolean interrupts : new boolean[] {false, true, false}) {
          SimulatedKernel kernel =
              kernel(t -> {
                if (interrupts && t.threadX() == 0) {
                  caller.interrupt();
                  LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(5));
                }
                t.syncThreads();
                int _ = t.atomicAdd(t.pointer(0), 1);
              });
          int sum = run(driver, kernel, threads(8));
          assertThat(Thread.interrupted()).isEqualTo(interrupts);
          assertThat(sum).isEqualTo(8);
        }
      }
    }
  }

  @Test
  void interruptOfAFunctionsThread_isItsOwn_behindABarrierToo() {
    for (Sync sync : BARRIERS) {
      AtomicInteger kept = new AtomicInteger();
      AtomicInteger strange = new AtomicInteger();
      SimulatedKernel kernel =
          kernel(t -> {
            boolean interrupts = t.threadX() % 2 == 0;
            if (interrupts) {
              Thread.currentThread().interrupt();
            }
            sync.function.run(t);
            boolean is = Thread.currentThread().isInterrupted();
            int _ = (is == interrupts ? kept : strange).incrementAndGet();
          });
      for (int seed = 0; seed < SEEDS; seed++) {
        assertThat(run(seed, kernel, ALL_TOGETHER)).isZero();
      }
      assertThat(strange).as(sync.name).hasValue(0);
      assertThat(kept).as(sync.name).hasValue(16 * SEEDS);
    }
  }

  @Test
  void functionThatWaitsLessThanItsPatience_goesOn() {
    SimulatedKernel kernel =
        kernel(
                t -> {
                  LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(230));
                  t.setInt(t.pointer(0), 5);
                })
            .withPatience(Duration.ofSeconds(40));
    assertThat(run(1, kernel, threads(1))).isEqualTo(5);
  }

  private static void refused(String message, ThrowingCallable call) {
    assertThatIllegalArgumentException().isThrownBy(call).withMessageStartingWith(message);
  }

  @Test
  void kernel_hasANameOfPtx_andTheSharedMemoryThatCodeCanDeclare() {
    for (String name : List.of("", " ", "a b", "a.b", "a-b", "a\n", "a()", "é?")) {
      refused("name: '" + name, () -> SimulatedKernel.of(name, _ -> {}));
    }
    for (String name : List.of("a", "_Z3addPfi", "$1", "%a", "0", "A_9$")) {
      assertThat(SimulatedKernel.of(name, _ -> {}).name()).isEqualTo(name);
    }
    SimulatedKernel plain = SimulatedKernel.of("plain", _ -> {}, POINTER);
    for (int bytes : new int[] {-1, Integer.MIN_VALUE, 49_153, Integer.MAX_VALUE}) {
      refused("sharedBytes: " + bytes, () -> plain.withSharedBytes(bytes));
    }
    for (int bytes : new int[] {0, 1, 49_152}) {
      assertThat(plain.withSharedBytes(bytes))
          .isEqualTo(
              new SimulatedKernel(
                  "plain", plain.parameters(), bytes, plain.function(), plain.patience()));
    }
    assertThat(plain.sharedBytes()).isZero();
    assertThat(plain.parameters()).containsExactly(POINTER);
  }

  /** A question about a shape that no launch could have is refused, and no arithmetic fails. */
  @Test
  void questionsAboutShapesThatCannotBe_areRefused() {
    SimulatedKernel plain = kernel(_ -> {});
    Map<String, ThrowingCallable> wrong = new LinkedHashMap<>();
    try (SimulatedDriver driver = open(1)) {
      long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(plain)));
      var kernels = driver.kernels();
      long k = kernels.libraryGetKernel(library, plain.name());
      for (int bad : new int[] {0, -1, Integer.MIN_VALUE}) {
        wrong.put(
            "threads " + bad,
            () -> kernels.occupancyMaxActiveBlocksPerMultiprocessor(0, k, bad, 0));
        wrong.put(
            "blocks " + bad, () -> kernels.occupancyAvailableDynamicSMemPerBlock(0, k, bad, 1));
        wrong.put("left " + bad, () -> kernels.occupancyAvailableDynamicSMemPerBlock(0, k, 1, bad));
        wrong.put("clusters " + bad, () -> kernels.occupancyMaxActiveClusters(0, k, threads(bad)));
        wrong.put(
            "largest " + bad, () -> kernels.occupancyMaxPotentialClusterSize(0, k, threads(bad)));
      }
      for (int bad : new int[] {-1, Integer.MIN_VALUE}) {
        wrong.put(
            "shared " + bad, () -> kernels.occupancyMaxActiveBlocksPerMultiprocessor(0, k, 1, bad));
        wrong.put("potential " + bad, () -> kernels.occupancyMaxPotentialBlockSize(0, k, bad, 0));
        wrong.put("limit " + bad, () -> kernels.occupancyMaxPotentialBlockSize(0, k, 0, bad));
        wrong.put("parameter " + bad, () -> kernels.kernelGetParamInfo(k, bad));
      }
      wrong.put("parameter 1", () -> kernels.kernelGetParamInfo(k, 1));
      wrong.put("blocks 33", () -> kernels.occupancyAvailableDynamicSMemPerBlock(0, k, 33, 1));
      wrong.put("left 1025", () -> kernels.occupancyAvailableDynamicSMemPerBlock(0, k, 1, 1025));
      wrong.put("clusters 1025", () -> kernels.occupancyMaxActiveClusters(0, k, threads(1025)));
      wrong.forEach((name, call) -> {
        SimTestBase.assertFails(CudaStatus.INVALID_VALUE, "expected", call);
        assertThat(name).isNotEmpty();
      });
      assertThat(kernels.occupancyMaxActiveBlocksPerMultiprocessor(0, k, 1025, 0)).isZero();
      assertThat(kernels.occupancyMaxActiveBlocksPerMultiprocessor(0, k, 1, 0)).isEqualTo(32);
      assertThat(kernels.kernelGetParamInfo(k, 0)).isEqualTo(new KernelParameter(0, 8));
    }
  }

  private static final int LOOKS = 12_000;

  /** What a thread looks at again and again, and whether it waits in that way. */
  private static Map<String, KernelFunction> looks(boolean waits) {
    Map<String, KernelFunction> looks = new LinkedHashMap<>();
    MemorySegment bytes = MemorySegment.ofArray(new byte[3]);
    if (waits) {
      looks.put("byte", t -> t.getByte(t.pointer(0)));
      looks.put("int", t -> t.getInt(t.pointer(0)));
      looks.put("long", t -> t.getLong(t.pointer(0)));
      looks.put("float", t -> t.getFloat(t.pointer(0)));
      looks.put("double", t -> t.getDouble(t.pointer(0)));
      looks.put("update that changes nothing", t -> t.atomicUpdate(t.pointer(0), old -> old));
      looks.put("update of a long", t -> t.atomicUpdateLong(t.pointer(0), old -> old));
      looks.put("exchange in vain", t -> t.atomicCas(t.pointer(0), 5, 6));
      return looks;
    }
    Map<String, KernelFunction> writes = new LinkedHashMap<>();
    writes.put("byte", t -> t.setByte(t.pointer(0) + 32, (byte) 1));
    writes.put("int", t -> t.setInt(t.pointer(0) + 32, 1));
    writes.put("long", t -> t.setLong(t.pointer(0) + 32, 1));
    writes.put("bytes", t -> t.setBytes(t.pointer(0) + 32, bytes));
    writes.put("sum", t -> t.atomicAdd(t.pointer(0) + 32, 1));
    writes.put("sum of longs", t -> t.atomicUpdateLong(t.pointer(0) + 32, old -> old + 1));
    writes.put("part and whole", KernelRulesTest::lookAtPartAndWhole);
    writes.put("look elsewhere", t -> t.getInt(t.pointer(0) + 4));
    writes.forEach((name, write) -> {
      looks.put(name + " between looks", t -> run(write, t, true));
      looks.put(name, t -> run(write, t, name.startsWith("look")));
    });
    return looks;
  }

  /** One address, but never the same number twice in a row. */
  private static void lookAtPartAndWhole(KernelThread thread) {
    long address = thread.pointer(0) + 32;
    if (thread.getLong(address) == 0) {
      thread.setInt(address + 4, 1);
    }
    int _ = thread.getInt(address);
  }

  private static void run(KernelFunction write, KernelThread thread, boolean looks) {
    if (looks && thread.getInt(thread.pointer(0)) != 0) {
      throw new IllegalStateException("nobody wrote there");
    }
    write.run(thread);
  }

  /** Only who waits lets others go on each time; the seed alone says so a few times. */
  @Test
  void threadThatLooksInVain_givesWay_andOneThatDoesMoreKeepsItsTurn() {
    int switches = 6;
    for (boolean waits : new boolean[] {true, false}) {
      looks(waits)
          .forEach((name, look) -> {
            int[] last = {-1};
            int[] turns = {0};
            SimulatedKernel kernel =
                kernel(t -> {
                  for (int i = 0; i < LOOKS; i++) {
                    if (last[0] != t.threadX()) {
                      last[0] = t.threadX();
                      turns[0]++;
                    }
                    look.run(t);
                  }
                });
            int _ = run(3, kernel, threads(2));
            int least = waits ? LOOKS / 1024 : 2;
            int most = waits ? LOOKS : switches + 2;
            assertThat(turns[0]).as(name).isBetween(least, most);
          });
    }
  }

  /** It is that of each block in it. */
  @Test
  void barrierOfACluster_isNamedOnce() {
    LaunchShape cluster = new LaunchShape(2, 1, 1, 2, 1, 1, 2, 1, 1, 0, true, false);
    SimulatedKernel kernel =
        kernel(t -> {
          if (t.globalX() == 0) {
            t.syncGrid();
          } else {
            t.syncCluster();
          }
        });
    String once = "no thread can go on: (?!.*syncCluster.*syncCluster).*3 of 4 threads wait at ";
    assertFails(1, kernel, cluster, once + "syncCluster");
  }
}

package io.cuvette.sim;

import static io.cuvette.sim.SimulatedParameter.POINTER;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.PoolProperties;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Kernels that wait, reach, register and outlive in ways that nobody thinks of first. */
@Timeout(300) // two of them take half a minute of a processor
class HostileKernelTest {
  private static final AtomicInteger NAMES = new AtomicInteger();
  private SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.parse("devices=2,seed=1"));

  @AfterEach
  void close() {
    driver.close();
  }

  private static SimulatedKernel kernel(KernelFunction function) {
    return SimulatedKernel.of("hostile" + NAMES.incrementAndGet(), function, POINTER);
  }

  private long find(SimulatedKernel kernel) {
    long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(kernel)));
    return driver.kernels().libraryGetKernel(library, kernel.name());
  }

  private void launch(long kernel, LaunchShape shape, long address) {
    MemorySegment values = Arena.ofAuto().allocate(8, 8);
    values.set(JAVA_LONG, 0, address);
    LaunchParameters arguments = new LaunchParameters(values, List.of(new KernelParameter(0, 8)));
    driver.kernels().launchKernel(0, 0, kernel, shape, arguments);
  }

  private static LaunchShape shape(int blocks, int threads, int shared, boolean cooperative) {
    return new LaunchShape(blocks, 1, 1, threads, 1, 1, 1, 1, 1, shared, cooperative, false);
  }

  private long zeros(int count) {
    long memory = driver.memory().memAlloc(0, count * 4L);
    driver.transfers().memsetD32Async(0, memory, 0, count, 0);
    return memory;
  }

  private int read(long address) {
    MemorySegment result = Arena.ofAuto().allocate(JAVA_INT);
    driver.transfers().memcpyDtoHAsync(0, result, address, 0);
    driver.streams().streamSynchronize(0, 0);
    return result.get(JAVA_INT, 0);
  }

  private static void assertFails(CudaStatus status, String text, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(CudaException.class, e -> assertThat(e.status()).isEqualTo(status))
        .hasMessageContaining(text);
  }

  private int run(SimulatedKernel kernel, LaunchShape shape, long memory) {
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(kernel)) {
      launch(find(kernel), shape, memory);
      return read(memory);
    }
  }

  @Test
  void threadThatWaitsForManyFlags_seesThemSet() {
    SimulatedKernel kernel =
        kernel(t -> {
          long own = t.pointer(0) + 4 * t.globalX();
          if (t.globalX() > 0) {
            t.setInt(own, 1);
            return;
          }
          int set;
          do {
            set = 0;
            for (int i = 1; i < 100; i++) {
              set += t.getInt(own + 4 * i);
            }
          } while (set < 99);
          t.setInt(own, set);
        });
    for (int seed = 0; seed < 20; seed++) {
      driver.close();
      driver = SimulatedDriver.open(SimulatedOptions.parse("seed=" + seed));
      assertThat(run(kernel, shape(100, 1, 0, true), zeros(100))).as("seed %d", seed).isEqualTo(99);
    }
  }

  @Test
  void timeOfACooperativeGrid_growsWithItsThreads_notWithTheirSquare() {
    SimulatedKernel kernel =
        kernel(t -> {
          int _ = t.atomicAdd(t.pointer(0), 1);
          t.syncGrid();
        });
    assertThat(run(kernel, shape(192, 1024, 0, true), zeros(1))).isEqualTo(192 * 1024);
  }

  /** Looks at nothing are accesses as well, and the cheapest: so many of others take 30 s. */
  @Test
  void threadsThatWaitForFlagsThatNobodySets_end() {
    MemorySegment nothing = MemorySegment.ofArray(new byte[0]);
    SimulatedKernel kernel =
        kernel(t -> {
          long flags = t.pointer(0);
          while (t.getInt(flags) + t.getInt(flags + 4) == 0) {
            for (int i = 0; i < 1000; i++) {
              t.getBytes(flags, nothing);
            }
          }
        });
    assertFails(
        CudaStatus.LAUNCH_TIMEOUT,
        "268435456 accesses in a row changed nothing",
        () -> run(kernel, shape(1, 2, 0, false), zeros(2)));
  }

  @Test
  void atomicUpdate_thatUsesMemory_isRefused() {
    SimulatedKernel kernel =
        kernel(t -> {
          long counter = t.pointer(0);
          int _ = t.atomicUpdate(counter, old -> old + t.getInt(counter + 4));
        });
    assertFails(
        CudaStatus.LAUNCH_FAILED,
        "uses memory or a barrier in an atomic update",
        () -> run(kernel, shape(1, 2, 0, false), zeros(2)));
  }

  @Test
  void atomicUpdate_thatThrows_leavesItsThreadAsItWas() {
    SimulatedKernel kernel =
        kernel(t -> {
          try {
            int _ = t.atomicUpdate(t.pointer(0), _ -> Integer.parseInt("none"));
          } catch (NumberFormatException e) {
            t.setInt(t.pointer(0), 5);
          }
          try {
            long _ = t.atomicUpdateLong(t.pointer(0), _ -> Long.parseLong("none"));
          } catch (NumberFormatException e) {
            t.setInt(t.pointer(0), t.getInt(t.pointer(0)) + 1);
          }
        });
    assertThat(run(kernel, shape(1, 1, 0, false), zeros(2))).isEqualTo(6);
  }

  @Test
  void everyPageOfManagedMemory_comesToTheDeviceThatUsesIt() {
    int pages = 4;
    long page = 2L << 20;
    long managed = driver.memory().memAllocManaged(0, pages * page, 1).address();
    long before = driver.devices().memGetInfo(0).freeBytes();
    SimulatedKernel kernel =
        kernel(t -> {
          for (long i = 0; i < pages; i++) {
            t.setInt(t.pointer(0) + i * page, (int) i);
          }
        });
    assertThat(run(kernel, shape(1, 1, 0, false), managed)).isZero();
    assertThat(before - driver.devices().memGetInfo(0).freeBytes()).isEqualTo(pages * page);
  }

  @Test
  void plainMemoryOfAnotherDevice_needsPeerAccess() {
    long theirs = driver.memory().memAlloc(1, 64);
    driver.transfers().memsetD32Async(1, theirs, 7, 16, 0);
    driver.streams().streamSynchronize(1, 0);
    SimulatedKernel reads = kernel(t -> t.setInt(t.pointer(0), t.getInt(theirs)));
    assertFails(
        CudaStatus.ILLEGAL_ADDRESS,
        "device 0 has no peer access to it",
        () -> run(reads, shape(1, 1, 0, false), zeros(1)));
  }

  @Test
  void memoryOfAPoolThatMayBeRead_isRead_andNotWritten() {
    long pool = driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 1, 0));
    driver.pools().memPoolSetAccess(pool, 1, new int[] {0}, 1);
    long stream = driver.streams().streamCreateWithPriority(1, 1, 0);
    long theirs = driver.ordered().memAllocFromPoolAsync(1, 64, pool, stream);
    driver.transfers().memsetD32Async(1, theirs, 7, 16, stream);
    driver.streams().streamSynchronize(1, stream);
    SimulatedKernel reads = kernel(t -> t.setInt(t.pointer(0), t.getInt(theirs)));
    assertThat(run(reads, shape(1, 1, 0, false), zeros(1))).isEqualTo(7);
    SimulatedKernel writes =
        kernel(t -> {
          int _ = t.getInt(theirs);
          t.setInt(theirs, 1);
        });
    assertFails(
        CudaStatus.ILLEGAL_ADDRESS,
        "has access 1 to its pool (expected: 3)",
        () -> run(writes, shape(1, 1, 0, false), zeros(1)));
  }

  @Test
  void functionThatIsRegisteredLate_bringsItsSharedMemory() {
    SimulatedKernel late = kernel(t -> {}).withSharedBytes(40_000);
    long found = find(late);
    assertThat(driver.kernels().kernelGetAttribute(1, found, 0)).isZero();
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(late)) {
      assertThat(driver.kernels().kernelGetAttribute(1, found, 0)).isEqualTo(40_000);
      assertThatThrownBy(() -> launch(found, shape(1, 1, 40_000, false), 0))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("40000 bytes (expected: 0 to 9152");
      assertThatCode(() -> launch(found, shape(1, 1, 9_152, false), 0)).doesNotThrowAnyException();
    }
  }

  @Test
  void limitThatWasSetBeforeTheFunctionIsKnown_leavesRoomForWhatItDeclares() {
    SimulatedKernel late = kernel(t -> {}).withSharedBytes(40_000);
    long found = find(late);
    driver.kernels().kernelSetAttribute(8, 232_448, found, 0);
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(late)) {
      assertThat(driver.kernels().kernelGetAttribute(8, found, 0)).isEqualTo(192_448);
      assertThatThrownBy(() -> launch(found, shape(1, 1, 192_449, false), 0))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("192449 bytes (expected: 0 to 192448");
      launch(found, shape(1, 1, 192_448, false), 0);
      driver.streams().streamSynchronize(0, 0);
    }
  }

  @Test
  void registrations_areClosedOneByOne_andOnce() {
    SimulatedKernel kernel = kernel(t -> t.setInt(t.pointer(0), 5));
    long found = find(kernel);
    long memory = zeros(1);
    SimulatedKernels.Registered first = SimulatedKernels.register(kernel);
    SimulatedKernels.Registered second = SimulatedKernels.register(kernel);
    second.close();
    second.close();
    launch(found, shape(1, 1, 0, false), memory);
    assertThat(read(memory)).isEqualTo(5);
    first.close();
    assertThatThrownBy(() -> launch(found, shape(1, 1, 0, false), memory))
        .hasMessageEndingWith("(expected: one of this name, by SimulatedKernels.register)");
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(kernel)) {
      first.close();
      assertThatCode(() -> launch(found, shape(1, 1, 0, false), memory)).doesNotThrowAnyException();
    }
  }

  @Test
  void threadThatHasEnded_orIsOfAnotherJavaThread_reachesNothing() throws InterruptedException {
    AtomicReference<KernelThread> kept = new AtomicReference<>();
    long memory = zeros(1);
    int _ = run(kernel(kept::set), shape(1, 1, 0, false), memory);
    assertThatThrownBy(() -> kept.get().setInt(memory, 5))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("block (0, 0, 0), thread (0, 0, 0) is used after its end");
    assertThatThrownBy(kept.get()::syncThreads).isInstanceOf(IllegalStateException.class);
    AtomicReference<Throwable> seen = new AtomicReference<>();
    SimulatedKernel hands =
        kernel(t -> {
          Thread other = new Thread(() -> t.setInt(t.pointer(0), 5));
          other.setUncaughtExceptionHandler((_, e) -> seen.set(e));
          other.start();
          try {
            other.join();
          } catch (InterruptedException e) {
            throw new IllegalStateException(e);
          }
        });
    assertThat(run(hands, shape(1, 1, 0, false), memory)).isZero();
    assertThat(seen.get()).hasMessageContaining("by another Java thread");
  }

  @Test
  void moreDeclaredSharedMemoryThanCodeCanHave_isRefused() {
    assertThatThrownBy(() -> kernel(t -> {}).withSharedBytes(49_153))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("sharedBytes: 49153 (expected: 0 to 49152)");
    assertThat(kernel(t -> {}).withSharedBytes(49_152).sharedBytes()).isEqualTo(49_152);
  }

  @Test
  void gridThatWouldTakeDays_isRefused_andTheDeviceGoesOn() {
    SimulatedKernel kernel = kernel(t -> t.setInt(t.pointer(0), 1));
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(kernel)) {
      long memory = zeros(1);
      long handle = find(kernel);
      for (int[] grid :
          new int[][] {
            {Integer.MAX_VALUE, 1, 1},
            {1 << 20, 65_535, 65_535},
            {(1 << 24) + 1, 1, 1},
            {257, 1, 65_281}
          }) {
        LaunchShape huge =
            new LaunchShape(grid[0], grid[1], grid[2], 1, 1, 1, 1, 1, 1, 0, false, false);
        assertFails(
            CudaStatus.NOT_SUPPORTED,
            "blocks (expected: <= 16777216 blocks on the simulated device",
            () -> launch(handle, huge, memory));
      }
      assertThat(read(memory)).isZero();
      launch(handle, shape(1, 1, 0, false), memory);
      assertThat(read(memory)).isOne();
    }
  }

  /** Nothing guards memory against a view that its thread has left. */
  @Test
  void viewOfAThreadThatHasEnded_touchesNothing() {
    long memory = zeros(16);
    AtomicReference<KernelThread> kept = new AtomicReference<>();
    assertThat(run(kernel(kept::set), shape(1, 1, 0, false), memory)).isZero();
    KernelThread view = kept.get();
    MemorySegment bytes = MemorySegment.ofArray(new byte[8]);
    List<Runnable> uses =
        List.of(
            () -> view.getByte(memory),
            () -> view.getInt(memory),
            () -> view.getLong(memory),
            () -> view.setByte(memory, (byte) 1),
            () -> view.setInt(memory, 1),
            () -> view.setLong(memory, 1),
            () -> view.getBytes(memory, bytes),
            () -> view.setBytes(memory, bytes),
            () -> view.atomicUpdate(memory, old -> old + 1),
            () -> view.atomicUpdateLong(memory, old -> old + 1),
            () -> view.setConditional(1, 1),
            view::syncThreads,
            view::syncCluster,
            view::syncGrid);
    for (Runnable use : uses) {
      assertThatIllegalStateException().isThrownBy(use::run).withMessageContaining("after its end");
    }
  }

  @Test
  void atomicUpdate_mayNotUseMemoryInAnyWay() {
    MemorySegment bytes = MemorySegment.ofArray(new byte[4]);
    List<BiConsumer<KernelThread, Long>> uses =
        List.of(
            (t, at) -> t.setByte(at, (byte) 1),
            (t, at) -> t.setInt(at, 1),
            (t, at) -> t.setLong(at, 1),
            (t, at) -> t.setBytes(at, bytes),
            (t, at) -> t.getBytes(at, bytes),
            (t, at) -> {
              long _ = t.getByte(at) + t.getInt(at) + t.getLong(at);
            },
            (t, at) -> {
              int _ = t.atomicAdd(at, 1);
            },
            (t, at) -> {
              long _ = t.atomicUpdateLong(at, old -> old);
            });
    AtomicInteger refused = new AtomicInteger();
    SimulatedKernel kernel =
        kernel(t -> {
          for (BiConsumer<KernelThread, Long> use : uses) {
            try {
              int _ =
                  t.atomicUpdate(
                      t.pointer(0),
                      old -> {
                        use.accept(t, t.pointer(0) + 8);
                        return old;
                      });
            } catch (IllegalStateException e) {
              refused.incrementAndGet();
            }
          }
        });
    int _ = run(kernel, shape(1, 1, 0, false), zeros(4));
    assertThat(refused).hasValue(uses.size());
  }
}

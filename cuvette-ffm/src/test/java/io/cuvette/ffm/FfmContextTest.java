package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Contexts: retained once, current during a call, given back, and never those of others. */
@SuppressWarnings("restricted")
class FfmContextTest {
  private StubLibrary library;
  private CudaDriver driver;

  @BeforeEach
  void open(@TempDir Path folder) {
    library = StubLibrary.compile(folder);
    driver = library.open();
    library.reset();
  }

  @AfterEach
  void close() {
    if (driver != null) {
      driver.close();
    }
  }

  @Test
  void openDriver_hasNoContext() {
    assertThat(library.retained(0)).isZero();
    assertThat(library.retained(1)).isZero();
  }

  @Test
  void context_isRetainedAtItsFirstUse_andReleasedAtTheEnd() {
    driver.memory().memAlloc(1, 8);
    driver.memory().memAlloc(1, 8);
    assertThat(library.retained(0)).isZero();
    assertThat(library.retained(1)).isEqualTo(1);
    driver.close();
    driver.close();
    assertThat(library.retained(1)).isZero();
    assertThat(library.calls())
        .containsExactly(
            "cuDevicePrimaryCtxRetain@7000(41) in 0",
            "cuCtxSetCurrent@4000(c001) in 0",
            "cuMemAlloc@3020(8) in c001",
            "cuMemAlloc@3020(8) in c001",
            "cuDevicePrimaryCtxRelease@11000(41) in c001");
  }

  @Test
  void contextOfSomebodyElse_isRestored() {
    library.makeCurrent(0xeee);
    driver.memory().memAlloc(1, 8);
    assertThat(library.current()).isEqualTo(0xeee);
    driver.memory().memAlloc(0, 8);
    assertThat(library.current()).isEqualTo(0xeee);
    assertThat(library.calls())
        .contains("cuMemAlloc@3020(8) in c001", "cuMemAlloc@3020(8) in c000");
  }

  @Test
  void contextOfSomebodyElse_isRestoredAfterAFailure() {
    library.makeCurrent(0xeee);
    library.fail("cuMemAlloc", 2);
    assertThatThrownBy(() -> driver.memory().memAlloc(1, 512))
        .isInstanceOf(CudaException.class)
        .hasMessage("cuMemAlloc(bytes=512, device=1): CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
    assertThat(library.current()).isEqualTo(0xeee);
  }

  @Test
  void contextThatCannotBeRetained_isRetriedAtTheNextCall() {
    library.fail("cuDevicePrimaryCtxRetain", 2);
    assertThatThrownBy(() -> driver.memory().memAlloc(1, 8))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("cuDevicePrimaryCtxRetain(device=1)");
    library.reset();
    assertThat(driver.memory().memAlloc(1, 8)).isEqualTo(24);
    assertThat(library.retained(1)).isEqualTo(1);
  }

  @Test
  void contextThatCannotBecomeCurrent_failsTheCall() {
    library.makeCurrent(0xeee);
    library.fail("cuCtxSetCurrent", 709);
    assertThatThrownBy(() -> driver.memory().memAlloc(1, 8))
        .isInstanceOfSatisfying(
            CudaException.class,
            e -> assertThat(e.status()).isEqualTo(CudaStatus.CONTEXT_IS_DESTROYED));
    assertThat(library.calls())
        .filteredOn(call -> !call.startsWith("cuDevice"))
        .as("there is nothing to go back to")
        .containsExactly("cuCtxSetCurrent@4000(c001) in eee");
    library.reset();
    assertThat(driver.memory().memAlloc(1, 8)).isEqualTo(24);
  }

  /** A context costs memory of its device. */
  @Test
  void callsForAnyContext_takeOneThatIsThere() {
    driver.memory().memAlloc(1, 8);
    library.reset();
    library.makeCurrent(0xeee);
    driver.graphs().graphClone(0xabc);
    driver.graphs().graphNodeGetType(0x11);
    assertThat(library.calls())
        .containsExactly(
            "cuCtxSetCurrent@4000(c001) in eee",
            "cuGraphClone@10000(abc) in c001",
            "cuCtxSetCurrent@4000(eee) in c001",
            "cuCtxSetCurrent@4000(c001) in eee",
            "cuGraphNodeGetType@10000(11) in c001",
            "cuCtxSetCurrent@4000(eee) in c001");
    assertThat(library.retained(0)).isZero();
    driver.close();
    driver = library.open();
    driver.graphs().graphClone(0xabc);
    assertThat(library.retained(0)).as("the first where there is none").isEqualTo(1);
    assertThat(library.retained(1)).isZero();
  }

  /** Both are in the driver at once; one of them is closed meanwhile. */
  @Test
  void contextsThatAreRetainedAtOnce_areCountedOnce_andNotKeptFromAClose() throws Exception {
    for (boolean closes : new boolean[] {false, true}) {
      library.reset();
      library.hold("cuDevicePrimaryCtxRetain");
      try (ExecutorService executor = Executors.newFixedThreadPool(2)) {
        List<Future<Long>> calls =
            copies(2, () -> driver.memory().memAlloc(1, 8)).stream().map(executor::submit).toList();
        while (library.calls().size() < 2 && calls.stream().noneMatch(Future::isDone)) {
          Thread.onSpinWait();
        }
        if (closes) {
          driver.close();
        }
        library.hold("");
        for (Future<Long> call : calls) {
          if (closes) {
            assertThatThrownBy(call::get).hasMessageContaining("driver ffm is closed");
          } else {
            assertThat(call.get()).isEqualTo(24);
          }
        }
      } finally {
        library.hold("");
      }
      assertThat(library.retained(1)).isEqualTo(closes ? 0 : 1);
      driver.close();
      assertThat(library.retained(1)).isZero();
      driver = library.open();
    }
  }

  /** The program should look at that one, and not at the next. */
  @Test
  void onceTheContextIsLost_messagesNameTheFirstCallThatFailed() {
    library.fail("cuMemAlloc", CudaStatus.ILLEGAL_ADDRESS.code());
    assertThatThrownBy(() -> driver.memory().memAlloc(1, 512))
        .isInstanceOf(CudaException.class)
        .hasMessageStartingWith("cuMemAlloc(bytes=512, device=1): ");
    library.fail("cuMemFree", CudaStatus.ILLEGAL_ADDRESS.code());
    assertThatThrownBy(() -> driver.memory().memFree(0, 16))
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.ILLEGAL_ADDRESS))
        .hasMessageStartingWith("cuMemFree(address=0x10, device=0): ")
        .hasMessageContaining("the first call that failed was cuMemAlloc(bytes=512, device=1)");
  }

  @Test
  void unknownDevice_isAnError() {
    for (int device : new int[] {-1, 2, Integer.MAX_VALUE}) {
      assertThatThrownBy(() -> driver.memory().memAlloc(device, 8))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("cuDeviceGet(ordinal=" + device + "): CUDA_ERROR_INVALID_DEVICE");
    }
  }

  @Test
  void failedRelease_doesNotKeepOthers() {
    driver.memory().memAlloc(0, 8);
    driver.memory().memAlloc(1, 8);
    library.fail("cuDevicePrimaryCtxRelease", 700);
    assertThatThrownBy(driver::close)
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("cuDevicePrimaryCtxRelease(device=1)")
        .satisfies(e -> assertThat(e.getSuppressed()).hasSize(1));
  }

  private void launch(long stream) {
    LaunchShape shape = new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);
    driver
        .kernels()
        .launchKernel(0, stream, 7, shape, new LaunchParameters(MemorySegment.NULL, List.of()));
  }

  @Test
  void afterClose_everyCallFailsAndNamesTheDriver() {
    driver.memory().memAlloc(0, 8);
    driver.close();
    library.reset();
    List<Runnable> calls =
        List.of(
            () -> driver.memory().memAlloc(0, 8),
            () -> driver.memory().memFree(0, 8),
            () -> driver.graphs().graphDestroy(8),
            () -> driver.devices().deviceGetName(0),
            () -> driver.devices().deviceGetCount(),
            () -> driver.devices().driverGetVersion(),
            () -> driver.devices().ctxSynchronize(1),
            () -> driver.devices().ctxEnablePeerAccess(0, 1),
            () -> driver.streams().streamGetDevice(0, 0),
            () -> launch(0),
            () -> launch(9),
            () -> driver.streams().launchHostFunc(0, 1, () -> {}));
    assertThat(calls)
        .allSatisfy(call ->
            assertThatThrownBy(call::run)
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("driver ffm is closed"));
    assertThat(library.calls()).isEmpty();
  }

  @Test
  void twoDrivers_holdContextsOfTheirOwn() {
    driver.memory().memAlloc(0, 8);
    driver.close();
    driver = library.open();
    assertThat(driver.memory().memAlloc(0, 8)).isEqualTo(24);
    assertThat(library.retained(0)).isEqualTo(1);
  }

  @Test
  void manyThreads_retainAContextOnce() throws Exception {
    try (ExecutorService executor = Executors.newFixedThreadPool(16)) {
      for (Future<Long> call :
          executor.invokeAll(copies(64, () -> driver.memory().memAlloc(1, 8)))) {
        assertThat(call.get()).isEqualTo(24);
      }
    }
    assertThat(library.retained(1)).isEqualTo(1);
  }

  @Test
  void virtualThreads_neverShareResultsOrContexts() throws Exception {
    List<Callable<Long>> tasks = new ArrayList<>();
    for (int i = 0; i < 3_000; i++) {
      int device = i % 2;
      long bytes = 1_000L + i;
      tasks.add(() -> {
        Thread.yield();
        assertThat(driver.memory().memAlloc(device, bytes)).isEqualTo(3 * bytes);
        Thread.yield();
        return bytes;
      });
    }
    try (ExecutorService executor = Executors.newVirtualThreadPerTaskExecutor()) {
      for (Future<Long> call : executor.invokeAll(tasks)) {
        call.get();
      }
    }
    List<String> allocations =
        library.calls().stream().filter(call -> call.startsWith("cuMemAlloc")).toList();
    assertThat(allocations)
        .hasSize(3_000)
        .allSatisfy(call -> {
          long bytes = Long.parseLong(call.replaceAll(".*\\((\\d+)\\).*", "$1"));
          assertThat(call).endsWith(" in c00" + bytes % 2);
        });
  }

  @Test
  void callsInsideACall_haveResultsAndContextsOfTheirOwn() throws Exception {
    MethodHandle allocator =
        MethodHandles.lookup()
            .bind(
                this,
                "allocateWithHelp",
                MethodType.methodType(long.class, long.class, long.class, int.class));
    try (Arena arena = Arena.ofConfined()) {
      long function =
          Linker.nativeLinker()
              .upcallStub(
                  allocator,
                  FunctionDescriptor.of(
                      ValueLayout.JAVA_LONG,
                      ValueLayout.JAVA_LONG,
                      ValueLayout.JAVA_LONG,
                      ValueLayout.JAVA_INT),
                  arena)
              .address();
      assertThat(driver.natives().callMalloc(function, 0, 100, 1)).isEqualTo(300 + 600);
    }
    assertThat(library.calls())
        .containsSubsequence(
            "cuMemAlloc@3020(100) in c001",
            "cuMemAlloc@3020(200) in c000",
            "cuMemFree@3020(1) in c001");
  }

  @SuppressWarnings("unused") // called through a method handle
  private long allocateWithHelp(long parameter, long bytes, int device) {
    long sum =
        driver.memory().memAlloc(device, bytes) + driver.memory().memAlloc(1 - device, 2 * bytes);
    driver.memory().memFree(device, 1);
    return sum;
  }

  private static <T> List<Callable<T>> copies(int count, Callable<T> task) {
    return Collections.nCopies(count, task);
  }
}

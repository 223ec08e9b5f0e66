package io.cuvette.ffm;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.GraphNodeParams;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * When the JVM begins to shut down, the driver's threads that ran Java functions are told to leave
 * it: on each device that has such a thread, and only where there still is one.
 */
@Timeout(120)
@SuppressWarnings("restricted")
class DriverThreadsTest {
  private static final int TRIES = 20;
  private static final long STREAM = 0x57;
  private static final GraphNodeParams.Host HOST = new GraphNodeParams.Host(() -> {});

  @TempDir private Path folder;
  private StubLibrary library;

  private CudaDriver open(String name) {
    library = StubLibrary.compile(folder.resolve(name));
    CudaDriver driver = library.open();
    driver.devices().memGetInfo(0);
    driver.devices().memGetInfo(1);
    return driver;
  }

  /** What the driver's classes do then; the calls that it makes. */
  private List<String> detach(CudaDriver driver) throws ReflectiveOperationException {
    library.reset();
    library.makeCurrent(0xeee);
    library.answer(STREAM, 0);
    detachNow(driver);
    return library.calls();
  }

  private static void detachNow(CudaDriver driver) throws ReflectiveOperationException {
    driver
        .getClass()
        .getClassLoader()
        .loadClass("io.cuvette.ffm.part.HostThreads")
        .getMethod("detach")
        .invoke(null);
  }

  /** A stream of the device runs a function of C, is waited for, and goes. */
  private static List<String> detached(int device) {
    String context = " in c00" + device;
    return List.of(
        "cuStreamCreateWithPriority@5050(1, 0)" + context,
        "cuLaunchHostFunc@10000(57)" + context,
        "cuStreamQuery@2000(57) in eee",
        "cuStreamQuery@2000(57) in eee",
        "cuStreamDestroy@4000(57)" + context,
        "cuDevicePrimaryCtxRelease@11000(4" + device + ") in eee");
  }

  @Test
  void withoutAnyFunction_nothingIsAskedOfTheDriver() throws Exception {
    try (CudaDriver driver = open("none")) {
      assertThat(detach(driver)).isEmpty();
    }
  }

  @Test
  void whateverWayAFunctionCame_itsDeviceIsDetached() throws Exception {
    Map<String, Consumer<CudaDriver>> ways =
        Map.of(
            "launch",
            driver -> driver.streams().launchHostFunc(1, 0x5, () -> {}),
            "add",
            driver -> driver.graphs().graphAddNode(1, 0xabc, new long[0], HOST));
    for (Map.Entry<String, Consumer<CudaDriver>> way : ways.entrySet()) {
      try (CudaDriver driver = open(way.getKey())) {
        way.getValue().accept(driver);
        List<String> calls = detach(driver);
        assertThat(calls).as(way.getKey()).containsSubsequence(detached(1));
        assertThat(calls).filteredOn(call -> call.startsWith("cuStreamQuery")).hasSize(2);
        assertThat(calls).noneMatch(call -> call.endsWith(" in c000"));
        assertThat(library.retained(1)).isEqualTo(1);
      }
    }
    Map<String, Consumer<CudaDriver>> changes =
        Map.of(
            "set",
            driver -> driver.graphs().graphNodeSetParams(1, 0x100, HOST),
            "exec-set",
            driver -> driver.graphs().graphExecNodeSetParams(1, 0x99, 0x100, HOST));
    for (Map.Entry<String, Consumer<CudaDriver>> change : changes.entrySet()) {
      try (CudaDriver driver = open(change.getKey())) {
        driver.graphs().graphAddNode(0, 0xabc, new long[0], HOST);
        change.getValue().accept(driver);
        List<String> calls = detach(driver);
        assertThat(calls).as(change.getKey()).containsAll(detached(0)).containsAll(detached(1));
      }
    }
  }

  /** DetachCurrentThread is the sixth in the table that a JavaVM begins with. */
  @Test
  void functionThatIsLaunched_isThatOfTheJvm_withTheJvm() throws Exception {
    try (CudaDriver driver = open("function")) {
      driver.graphs().graphAddNode(1, 0xabc, new long[0], HOST);
      assertThat(detach(driver)).isNotEmpty();
      MemorySegment launched = library.memory("launched", 16);
      long machine = launched.get(JAVA_LONG, 8);
      assertThat(machine).isNotZero();
      long table = MemorySegment.ofAddress(machine).reinterpret(8).get(JAVA_LONG, 0);
      assertThat(MemorySegment.ofAddress(table).reinterpret(64).getAtIndex(JAVA_LONG, 5))
          .isEqualTo(launched.get(JAVA_LONG, 0));
    }
  }

  @Test
  void deviceWithoutAContext_orOfWhichNothingIsKnown_isLeftAlone() throws Exception {
    CudaDriver driver = open("closed");
    driver.streams().launchHostFunc(1, 0x5, () -> {});
    library.reset();
    library.makeCurrent(0xeee);
    library.fail("cuDevicePrimaryCtxGetState", 3);
    detachNow(driver);
    assertThat(library.calls()).contains("cuDevicePrimaryCtxGetState@7000(41) in eee");
    assertThat(library.calls()).noneMatch(call -> call.startsWith("cuStream"));
    driver.close();
    assertThat(detach(driver))
        .contains("cuDevicePrimaryCtxGetState@7000(41) in eee")
        .noneMatch(call -> call.startsWith("cuStream") || call.contains("CtxRetain"));
    assertThat(library.retained(1)).isZero();
  }

  @Test
  void threadThatIsBusy_isWaitedFor_butNotForEver() throws Exception {
    try (CudaDriver driver = open("busy")) {
      driver.streams().launchHostFunc(1, 0x5, () -> {});
      boolean detached = false;
      for (int i = 0; i < TRIES && !detached; i++) { // this thread may see too late that it waits
        detached = detachesOnceItIsIdle(driver);
      }
      assertThat(detached).isTrue();
      library.reset();
      library.answer(STREAM, 0);
      library.fail("cuStreamQuery", 600);
      detachNow(driver);
      assertThat(library.calls()).noneMatch(call -> call.startsWith("cuStreamDestroy"));
    }
  }

  private boolean detachesOnceItIsIdle(CudaDriver driver) throws InterruptedException {
    library.reset();
    library.answer(STREAM, 0);
    library.fail("cuStreamQuery", 600);
    Thread detaching =
        Thread.ofPlatform()
            .start(() -> {
              try {
                detachNow(driver);
              } catch (ReflectiveOperationException e) {
                throw new AssertionError(e);
              }
            });
    while (queries() < 4 && detaching.isAlive()) {
      Thread.onSpinWait();
    }
    library.fail("", 0);
    detaching.join();
    return library.calls().contains("cuStreamDestroy@4000(57) in c001");
  }

  private long queries() {
    return library.calls().stream().filter(call -> call.startsWith("cuStreamQuery")).count();
  }

  @Test
  void whenTheJvmBeginsToShutDown_threadsAreDetached_andNothingElseIsCalled() throws Exception {
    try (CudaDriver driver = open("shutdown")) {
      driver.graphs().graphAddNode(1, 0xabc, new long[0], HOST);
      Method begin =
          driver
              .getClass()
              .getClassLoader()
              .loadClass("io.cuvette.ffm.Shutdown")
              .getDeclaredMethod("begin");
      begin.setAccessible(true);
      library.reset();
      library.makeCurrent(0xeee);
      library.answer(STREAM, 0);
      begin.invoke(null);
      assertThat(library.calls()).containsSubsequence(detached(1));
      library.reset();
      driver.memory().memFree(1, 8);
      assertThat(library.calls()).isEmpty();
    }
  }
}

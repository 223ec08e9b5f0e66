package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ForeignLoan;
import io.cuvette.LeakLevel;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.MemHandleType;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

/** What is left of a program before its Cuda is closed, and the end of all that was opened. */
class LeftoversTest {
  private static Cuda open(LiveHandles live) {
    return Cuda.open(CudaOptions.DEFAULTS.withDriver(live).withLeakLevel(LeakLevel.FULL));
  }

  /** A program may use more devices than its test asks for. */
  @Test
  void cacheOfADeviceThatWasUsedAllTheSame_isNotLeftBehind() {
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.parse("devices=2"));
    LiveHandles live = new LiveHandles(driver);
    try (Cuda cuda = open(live)) {
      Buffer used;
      try (CudaStream stream = cuda.device(1).createStream()) {
        used = cuda.allocate(64, stream);
      }
      assertThatThrownBy(() -> Leftovers.of(cuda, live, 1).throwIfAny())
          .isInstanceOf(AssertionError.class)
          .hasMessageContaining("open: ");
      used.close();
      assertThat(cuda.defaultMemoryPool().stats(cuda.device(1)).heldBytes()).isPositive();
      assertThatCode(() -> Leftovers.of(cuda, live, 1).throwIfAny()).doesNotThrowAnyException();
    }
    driver.close();
  }

  @Test
  void memoryThatNobodyHas_isNamedWithItsPlace() {
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    LiveHandles live = new LiveHandles(driver);
    try (Cuda cuda = open(live)) {
      long address = live.memory().memAlloc(0, 64);
      assertThatThrownBy(() -> Leftovers.of(cuda, live, 1).throwIfAny())
          .isInstanceOf(AssertionError.class)
          .hasMessageContaining("MEMORY 0x%x of memAlloc(64 bytes)".formatted(address))
          .satisfies(e -> assertThat(e.getSuppressed()).hasSize(1));
      live.memory().memFree(0, address);
      assertThatCode(() -> Leftovers.of(cuda, live, 1).throwIfAny()).doesNotThrowAnyException();
    }
    driver.close();
  }

  @Test
  void stepsAfterOneThatFailed_areRun_andTheirFailuresKept() {
    List<String> ran = new ArrayList<>();
    Cleanup cleanup = new Cleanup();
    cleanup.run(() -> {
      throw new IllegalStateException("first");
    });
    cleanup.run(() -> ran.add("second"));
    cleanup.run(() -> {
      throw new AssertionError("third");
    });
    assertThat(ran).containsExactly("second");
    assertThatThrownBy(cleanup::throwFirst)
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("first")
        .satisfies(e -> assertThat(e.getSuppressed()).hasSize(1));
  }

  /** What the driver has, as if a part of the library had made it. */
  private static void madeBy(String maker, LiveHandles live) {
    StackTraceElement[] stack = {
      new StackTraceElement(maker, "make", "Maker.java", 1),
      new StackTraceElement("org.example.Program", "run", "Program.java", 2)
    };
    live.live().stream()
        .filter(made -> Arrays.stream(made.getStackTrace()).noneMatch(LeftoversTest::isMade))
        .forEach(made -> made.setStackTrace(stack));
  }

  private static boolean isMade(StackTraceElement frame) {
    return "Maker.java".equals(frame.getFileName());
  }

  private static List<String> lost(Cuda cuda, LiveHandles live) {
    return Leftovers.of(cuda, live, 1).live().stream()
        .map(made -> String.valueOf(made.getMessage()))
        .toList();
  }

  @Test
  void moreThanTheLibraryKeepsForCallbacks_isLost() {
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.parse("devices=2"));
    LiveHandles live = new LiveHandles(driver);
    try (Cuda cuda = open(live)) {
      List<Long> streams = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        assertThat(lost(cuda, live)).as("one for each device").isEmpty();
        streams.add(live.streams().streamCreateWithPriority(i % 2, 1, 0));
        madeBy("io.cuvette.ThreadStreams", live);
      }
      assertThat(lost(cuda, live))
          .containsExactly("STREAM 0x%x of streamCreateWithPriority".formatted(streams.get(2)));
      streams.forEach(stream -> live.streams().streamDestroy(0, stream));
      List<Long> flags = new ArrayList<>();
      for (int i = 0; i < 5; i++) {
        assertThat(lost(cuda, live)).as("four pieces").isEmpty();
        flags.add(live.memory().memHostAlloc(0, 64, 0).address());
        madeBy("io.cuvette.internal.callback.CallbackFlags", live);
      }
      assertThat(lost(cuda, live))
          .containsExactly("MEMORY 0x%x of memHostAlloc(64 bytes)".formatted(flags.get(4)));
      flags.forEach(address -> live.memory().memFreeHost(0, address));
    }
    driver.close();
  }

  @Test
  void markOfAStream_isKeptWithIt_andASecondOneIsLost() {
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    LiveHandles live = new LiveHandles(driver);
    try (Cuda cuda = open(live)) {
      long stream = live.streams().streamCreateWithPriority(0, 1, 0);
      madeBy("io.cuvette.internal.kernel.SharedModules", live);
      List<Long> marks = new ArrayList<>();
      for (long on : new long[] {0, 1, stream, stream, 0}) {
        long mark = live.events().eventCreate(0, 2);
        live.events().eventRecord(0, mark, on);
        marks.add(mark);
      }
      marks.add(live.events().eventCreate(0, 2)); // of no stream
      madeBy("io.cuvette.internal.fence.IdleMark", live);
      String text = "EVENT 0x%x of eventCreate";
      assertThat(lost(cuda, live))
          .containsExactly(
              text.formatted(marks.get(3)),
              text.formatted(marks.get(4)),
              text.formatted(marks.get(5)));
      live.streams().streamDestroy(0, stream);
      assertThat(lost(cuda, live)).contains(text.formatted(marks.get(2)));
      marks.forEach(mark -> live.events().eventDestroy(0, mark));
      assertThat(lost(cuda, live)).isEmpty();
    }
    driver.close();
  }

  /** Nothing can be freed there, so nobody can tell what is left. */
  @Test
  void deviceThatFailed_isAnError_alsoWhereNoPoolHasMemory() {
    for (int failed = 0; failed < 2; failed++) {
      SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.parse("devices=2"));
      LiveHandles live = new LiveHandles(driver);
      try (Cuda cuda = open(live)) {
        int device = failed;
        live.streams()
            .launchHostFunc(
                device,
                0,
                () -> {
                  throw new IllegalStateException("fails the device");
                });
        assertThatThrownBy(() -> live.devices().ctxSynchronize(device))
            .isInstanceOf(CudaException.class);
        assertThatThrownBy(() -> Leftovers.of(cuda, live, 2)).isInstanceOf(CudaException.class);
      } catch (CudaException e) {
        assertThat(e.status().losesContext()).isTrue();
      }
      driver.close();
    }
  }

  @Test
  void whatIsOpen_isNamedOnce_withoutTheCountsOfItsPool() {
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    LiveHandles live = new LiveHandles(driver);
    try (Cuda cuda = open(live)) {
      cuda.defaultPinnedMemoryPool().allocate(64).close();
      assertThat(cuda.defaultPinnedMemoryPool().stats().heldBytes()).isPositive();
      assertThatCode(() -> Leftovers.of(cuda, live, 1).throwIfAny()).doesNotThrowAnyException();
      PinnedBuffer pinned = cuda.defaultPinnedMemoryPool().allocate(64);
      Leftovers left = Leftovers.of(cuda, live, 1);
      assertThat(left.open()).isNotEmpty();
      assertThat(left.live()).as("known by what is open").isEmpty();
      assertThat(left.wrong()).as("known by what is open").isEmpty();
      assertThatThrownBy(left::throwIfAny)
          .isInstanceOf(AssertionError.class)
          .hasMessageNotContaining("used = held = 0")
          .satisfies(e -> assertThat(e.getSuppressed()).hasSameSizeAs(left.open()));
      assertThatCode(left::throwIfLost).doesNotThrowAnyException();
      pinned.close();
    }
    driver.close();
  }

  @Test
  void countsOfAPool_areNamed_whereNothingIsKnownToBeOpen() {
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    LiveHandles live = new LiveHandles(driver);
    CudaOptions counting = CudaOptions.DEFAULTS.withDriver(live).withLeakLevel(LeakLevel.COUNT);
    try (Cuda cuda = Cuda.open(counting);
        Buffer _ = cuda.allocate(64);
        PinnedBuffer _ = cuda.defaultPinnedMemoryPool().allocate(64)) {
      assertThat(Leftovers.of(cuda, live, 1).wrong())
          .containsExactly(
              cuda.defaultMemoryPool().stats(cuda.device(0)) + " (expected: used = held = 0)",
              cuda.defaultPinnedMemoryPool().stats() + " (expected: used = held = 0)");
    }
    driver.close();
  }

  /** A thread of the library ends what foreign code gave back, here once that is waited for. */
  @Test
  void memoryThatIsAboutToBeFreed_isNotLost() {
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    LiveHandles live = new LiveHandles(driver);
    try (Cuda cuda = open(live)) {
      long address = live.memory().memAlloc(0, 64);
      assertThatThrownBy(() -> Leftovers.of(cuda, live, 1).throwIfLost())
          .isInstanceOf(AssertionError.class)
          .hasMessageContaining("live in the driver: MEMORY");
      Thread test = Thread.currentThread();
      AtomicBoolean isOver = new AtomicBoolean();
      ForeignLoan.of(
              () -> {
                while (test.getState() != Thread.State.TIMED_WAITING && !isOver.get()) {
                  Thread.onSpinWait();
                }
                live.memory().memFree(0, address);
              })
          .giveBack();
      Leftovers left = Leftovers.of(cuda, live, 1);
      isOver.set(true);
      assertThatCode(left::throwIfAny).doesNotThrowAnyException();
    }
    driver.close();
  }

  @Test
  void memoryWithoutAnAddress_isLiveUntilItsLastHandleIsGone_andMappingsByTheirRange() {
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    LiveHandles live = new LiveHandles(driver);
    long page = 2 << 20;
    try (Cuda cuda = open(live)) {
      long handle =
          live.virtual().memCreate(page, AllocationProperties.ofDevice(0, MemHandleType.NONE));
      long range = live.virtual().memAddressReserve(2 * page, 0, 0);
      live.virtual().memMap(range, page, 0, handle);
      live.virtual().memMap(range + page, page, 0, handle);
      assertThat(live.virtual().memRetainAllocationHandle(range)).isEqualTo(handle);
      live.virtual().memRelease(handle);
      assertThat(lost(cuda, live)).hasSize(4).anyMatch(text -> text.startsWith("ALLOCATION"));
      live.virtual().memRelease(handle);
      assertThat(lost(cuda, live)).hasSize(3).noneMatch(text -> text.startsWith("ALLOCATION"));
      live.virtual().memUnmap(range, page);
      assertThat(lost(cuda, live))
          .containsExactly(
              "ADDRESSES 0x%x of memAddressReserve(%d bytes)".formatted(range, 2 * page),
              "MAPPING 0x%x of memMap(%d bytes)".formatted(range + page, page));
      live.virtual().memUnmap(range + page, page);
      live.virtual().memAddressFree(range, 2 * page);
      assertThat(lost(cuda, live)).isEmpty();
    }
    driver.close();
  }

  /** A call that reports a lost context may have worked. */
  @Test
  void objectThatAGraphMayHave_isNoLongerItsMakers() {
    for (CudaStatus status : List.of(CudaStatus.LAUNCH_FAILED, CudaStatus.OUT_OF_MEMORY)) {
      ScriptedDriver script = new ScriptedDriver().fail("graphRetainUserObject", status);
      SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
      LiveHandles live = new LiveHandles(script.over(driver));
      long graph = live.graphs().graphCreate();
      long object = live.graphs().userObjectCreate().handle();
      assertThat(live.live()).hasSize(2);
      assertThatThrownBy(() -> live.graphs().graphRetainUserObject(graph, object))
          .isInstanceOf(CudaException.class);
      assertThat(live.live()).hasSize(status.losesContext() ? 1 : 2);
      live.graphs().userObjectRelease(object);
      live.graphs().graphDestroy(graph);
      assertThat(live.live()).isEmpty();
      driver.close();
    }
  }

  /** The system gives the number of a closed one to the next file. */
  @Test
  void descriptorThatWasClosed_isNotOpen_whateverHasItsNumber() {
    assumeTrue(Files.isDirectory(Path.of("/proc/self/fd")), "memory is shared on Linux alone");
    DescriptorCalls calls = DescriptorCalls.find().orElseThrow();
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    LiveHandles live = new LiveHandles(driver);
    AllocationProperties properties =
        AllocationProperties.ofDevice(0, MemHandleType.FILE_DESCRIPTOR);
    long first = driver.virtual().memCreate(2 << 20, properties);
    long second = driver.virtual().memCreate(2 << 20, properties);
    int descriptor = live.virtual().memExportToShareableHandle(first);
    assertThat(live.exported.open()).hasSize(1);
    calls.close(descriptor);
    int other = driver.virtual().memExportToShareableHandle(second);
    assertThat(live.exported.open()).isEmpty();
    calls.close(other);
    driver.virtual().memRelease(first);
    driver.virtual().memRelease(second);
    driver.close();
  }
}

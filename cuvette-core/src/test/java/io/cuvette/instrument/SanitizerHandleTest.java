package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.KernelCalls;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.PointerAttribute;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.junit.jupiter.api.Test;

class SanitizerHandleTest extends SanitizerTestBase {

  @Test
  void liveHandles_areSilent() {
    long stream = stream();
    long event = event();
    driver.streams().streamGetId(0, stream);
    driver.streams().streamGetFlags(0, stream);
    driver.streams().streamGetPriority(0, stream);
    driver.streams().streamGetDevice(0, stream);
    driver.captures().streamIsCapturing(0, stream);
    driver.events().eventRecord(0, event, stream);
    driver.events().eventDestroy(0, event);
    driver.streams().streamDestroy(0, stream);
    driver.close();

    assertSilent();
  }

  @Test
  void destroyedStream_isReportedWithItsDestruction() {
    long stream = stream();
    driver.streams().streamDestroy(0, stream);

    write(memory(), stream);

    SanitizerReport report = assertOnly(Misuse.DESTROYED_HANDLE);
    assertThat(report.message()).contains("stream 0x%x was destroyed".formatted(stream));
    assertThat(report.sites())
        .extracting(Site::call)
        .satisfiesExactly(
            use -> assertThat(use).startsWith("memsetD8Async("),
            destruction -> assertThat(destruction).startsWith("streamDestroy("),
            creation -> assertThat(creation).startsWith("streamCreateWithPriority("));
  }

  @Test
  void destroyedEvent_isReported() {
    long event = event();
    driver.events().eventDestroy(0, event);

    driver.streams().streamWaitEvent(0, 0, event);

    assertOnly(Misuse.DESTROYED_HANDLE);
  }

  @Test
  void secondDestruction_isADoubleFree() {
    long event = event();
    driver.events().eventDestroy(0, event);
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.events().eventDestroy(0, event));

    assertThat(assertOnly(Misuse.DOUBLE_FREE).sites()).hasSize(3);
  }

  @Test
  void foreignStream_isReportedOnce() {
    long address = memory();

    write(address, 0xabcd);
    write(address, 0xabcd);

    assertThat(assertOnly(Misuse.UNKNOWN_HANDLE).message())
        .contains("no stream 0xabcd was made here");
    assertThat(driver.leaks()).as("not ours to destroy").hasSize(1);
  }

  /** Nobody knows whether it is, so fewer mistakes are found, never too many. */
  @Test
  void foreignStream_isTakenForOneThatTheDefaultStreamWaitsFor() {
    long address = memory();
    write(address, 0xabcd);
    write(address, 0);
    write(address, 0xabcd);
    assertOnly(Misuse.UNKNOWN_HANDLE);
  }

  @Test
  void foreignEvent_isReported_andTakenToOrderEverything() {
    SanitizerDriver lenient =
        SanitizerDriver.reporting(tiny.driver, reports::add, Misuse.UNKNOWN_HANDLE);
    long address = lenient.memory().memAlloc(0, 64);
    long first = lenient.streams().streamCreateWithPriority(0, 1, 0);
    long second = lenient.streams().streamCreateWithPriority(0, 1, 0);
    lenient.transfers().memsetD8Async(0, address, (byte) 1, 64, first);
    lenient.streams().streamWaitEvent(0, second, 0xabcd);
    lenient.transfers().memsetD8Async(0, address, (byte) 1, 64, second);
    assertSilent();

    driver.streams().streamWaitEvent(0, 0, 0xabcd);
    assertOnly(Misuse.UNKNOWN_HANDLE);
  }

  @Test
  void graph_isLeakedUnlessDestroyed() {
    long stream = stream();
    driver.captures().streamBeginCapture(0, stream, 0);
    long graph = driver.captures().streamEndCapture(0, stream);
    driver.streams().streamDestroy(0, stream);

    assertThat(driver.leaks())
        .singleElement()
        .satisfies(leak ->
            assertThat(leak.message()).contains("graph 0x%x is never freed".formatted(graph)));
    driver.graphs().graphDestroy(graph);
    assertThat(driver.leaks()).isEmpty();
  }

  @Test
  void refusedDestruction_leavesTheHandleLive() {
    Faults failing = Faults.at(tiny.driver, 1).only("eventDestroy");
    SanitizerDriver above = SanitizerDriver.reporting(failing.driver(), reports::add);
    long event = above.events().eventCreate(0, 2);
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> above.events().eventDestroy(0, event));
    above.streams().streamWaitEvent(0, 0, event);
    assertThat(above.leaks()).hasSize(1);
    above.events().eventDestroy(0, event);

    assertSilent();
    assertThat(above.leaks()).isEmpty();
  }

  @Test
  void kernelsOfALibraryThatIsGone_areNamed_byEachCall() {
    KernelCalls kernels = driver.kernels();
    long library = kernels.libraryLoadData(new byte[1]);
    long kernel = kernels.libraryGetKernel(library, "any");
    LaunchShape shape = new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);
    List<Runnable> calls =
        List.of(
            () -> kernels.kernelGetName(kernel),
            () -> kernels.kernelGetParamInfo(kernel, 0),
            () -> kernels.kernelGetAttribute(0, kernel, 0),
            () -> kernels.kernelSetAttribute(8, 1, kernel, 0),
            () -> kernels.occupancyMaxActiveBlocksPerMultiprocessor(0, kernel, 32, 0),
            () -> kernels.occupancyMaxPotentialBlockSize(0, kernel, 0, 0),
            () -> kernels.occupancyAvailableDynamicSMemPerBlock(0, kernel, 1, 32),
            () -> kernels.occupancyMaxActiveClusters(0, kernel, shape),
            () -> kernels.occupancyMaxPotentialClusterSize(0, kernel, shape),
            () ->
                kernels.launchKernel(
                    0, 0, kernel, shape, new LaunchParameters(MemorySegment.NULL, List.of())));
    tiny.refuse("libraryUnload");
    assertThatExceptionOfType(CudaException.class).isThrownBy(() -> kernels.libraryUnload(library));
    calls.forEach(Runnable::run);
    assertSilent();
    tiny.refuse("nothing");
    kernels.libraryUnload(library);
    for (Runnable call : calls) {
      call.run();
      assertThat(assertOnly(Misuse.DESTROYED_HANDLE).sites())
          .as("call %d", calls.indexOf(call))
          .extracting(Site::call)
          .anyMatch(site -> site.startsWith("libraryUnload("));
      reports.clear();
    }
  }

  /** The driver may take it all the same: then what is not known is not followed. */
  @Test
  void callsWithADestroyedHandle_areNamed_andDoNothingElse() {
    long stream = stream();
    long event = event();
    long dead = stream();
    long deadEvent = event();
    driver.streams().streamDestroy(0, dead);
    driver.events().eventDestroy(0, deadEvent);
    List<Runnable> calls =
        List.of(
            () -> driver.events().eventRecord(0, event, dead),
            () -> driver.events().eventRecord(0, deadEvent, stream),
            () -> driver.events().eventQuery(0, deadEvent),
            () -> driver.streams().streamWaitEvent(0, dead, event),
            () -> driver.streams().streamQuery(0, dead),
            () -> driver.streams().streamSynchronize(0, dead),
            () -> driver.streams().launchHostFunc(0, dead, () -> {}),
            () -> driver.graphs().graphLaunch(0, 1, dead),
            () -> driver.ordered().memAllocAsync(0, 64, dead),
            () -> driver.captures().streamBeginCapture(0, dead, 0),
            () -> driver.captures().streamIsCapturing(0, dead));
    for (Runnable call : calls) {
      call.run();
      assertThat(reports)
          .as("call %d", calls.indexOf(call))
          .isNotEmpty()
          .allMatch(report -> report.misuse() == Misuse.DESTROYED_HANDLE);
      reports.clear();
    }
  }

  @Test
  void handlesOfLibrariesAndOfMemory_areLeakedUnlessGivenBack() {
    SanitizerDriver above =
        SanitizerDriver.reporting(SimulatedDriver.open(SimulatedOptions.DEFAULTS), reports::add);
    long library = above.math().mathHandleCreate(MathLibrary.CUBLAS, 0);
    long memory = above.virtual().memCreate(2 << 20, AllocationProperties.ofDevice(0, 0));
    assertThat(above.leaks())
        .extracting(SanitizerReport::message)
        .anyMatch(text -> text.contains("library handle 0x%x is never freed".formatted(library)))
        .anyMatch(text -> text.contains("allocation handle 0x%x is never freed".formatted(memory)))
        .hasSize(2);
    above.math().mathHandleDestroy(MathLibrary.CUBLAS, 0, library);
    above.virtual().memRelease(memory);
    assertThat(above.leaks()).isEmpty();
    above.close();

    assertSilent();
  }

  @Test
  void functionOfACapture_saysNothingOfEarlierWork() {
    long first = stream();
    long block = memory();
    write(block, first);
    driver.captures().streamBeginCapture(0, first, 0);
    driver.streams().launchHostFunc(0, first, () -> {}); // whenever it runs
    driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, first));
    assertSilent();
    write(block, stream());

    assertOnly(Misuse.RACE);
  }

  @Test
  void eventOfACapture_saysNothingOfEarlierWork() {
    long first = stream();
    long second = stream();
    long event = event();
    long block = memory();
    write(block, first);
    driver.captures().streamBeginCapture(0, first, 0);
    driver.events().eventRecord(0, event, first);
    driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, first));
    driver.streams().streamWaitEvent(0, second, event);
    assertSilent();
    write(block, second);

    assertOnly(Misuse.RACE);
  }

  /** Only the errors that say so end a capture. */
  @Test
  void captureWhoseEndWasRefused_goesOn() {
    long first = stream();
    long block = memory();
    write(block, stream());
    driver.captures().streamBeginCapture(0, first, 0);
    tiny.refuse("streamEndCapture");
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.captures().streamEndCapture(0, first));
    write(block, first);
    assertSilent();
    tiny.refuse("nothing");
    driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, first));
    write(block, first);

    assertOnly(Misuse.RACE);
  }

  @Test
  void endOfTheTimeBetweenTwoEvents_isDone() {
    long stream = stream();
    long address = memory();
    long start = event();
    long end = event();
    driver.events().eventRecord(0, start, stream);
    write(address, stream);
    driver.events().eventRecord(0, end, stream);
    driver.events().eventElapsedTime(0, start, end);
    write(address, stream());
    assertSilent();
  }

  @Test
  void poolThatTheDriverNames_isNotUnknown() {
    int attribute = PointerAttribute.MEMPOOL_HANDLE;
    long pool = driver.memory().pointerGetAttribute(0, attribute, memory());
    assertThat(driver.ordered().memAllocFromPoolAsync(0, 64, pool, 0)).isNotZero();
    assertSilent();
  }

  /** The program has to destroy it as before. */
  @Test
  void poolOfTheProgram_thatTheDriverNames_staysTheProgramsToDestroy() {
    SanitizerDriver sanitized =
        SanitizerDriver.reporting(
            SimulatedDriver.open(SimulatedOptions.DEFAULTS.withSeed(1)), reports::add);
    long pool = sanitized.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, 0));
    sanitized.pools().deviceSetMemPool(0, pool);
    assertThat(sanitized.pools().deviceGetMemPool(0)).isEqualTo(pool);
    sanitized.close();
    assertThat(assertOnly(Misuse.LEAK).message()).contains("pool 0x%x".formatted(pool));
  }

  @Test
  void partThatComesBackInADestroyedStream_isOneFinding() {
    long stream = stream();
    long chunk = memory();
    driver.blockAllocated(chunk, 512);
    driver.streams().streamDestroy(0, stream);
    driver.blockFreed(0, chunk, stream);
    assertOnly(Misuse.DESTROYED_HANDLE);
  }

  /** Handles have no sign: those with the highest bit are others than the three that always are. */
  @Test
  void streamsThatNobodyMade_areUnknown_whateverTheirNumber() {
    for (long handle : new long[] {-1, Long.MIN_VALUE, -0x1000, 3, Long.MAX_VALUE}) {
      write(memory(), handle);
      assertOnly(Misuse.UNKNOWN_HANDLE);
      reports.clear();
    }
    for (long handle = 0; handle <= 2; handle++) {
      write(memory(), handle);
      assertSilent();
    }
  }

  /** Other answers are no pools, and 0 is none. */
  @Test
  void numberThatIsNoPool_namesNone() {
    for (int attribute = 0; attribute < 24; attribute++) {
      tiny.importOf(0x9000 + attribute);
      long number = driver.memory().pointerGetAttribute(0, attribute, memory());
      driver.pools().memPoolTrimTo(number, 0);
      if (attribute == PointerAttribute.MEMPOOL_HANDLE) {
        assertSilent();
      } else {
        assertOnly(Misuse.UNKNOWN_HANDLE);
      }
      reports.clear();
    }
    tiny.importOf(0);
    long none = driver.memory().pointerGetAttribute(0, PointerAttribute.MEMPOOL_HANDLE, memory());
    driver.pools().memPoolTrimTo(none, 0);
    assertOnly(Misuse.UNKNOWN_HANDLE);
  }

  @Test
  void libraryOrAllocationThatIsGone_isNamed_byEachCall() {
    KernelCalls kernels = driver.kernels();
    long library = kernels.libraryLoadData(new byte[1]);
    long memory = driver.virtual().memCreate(2 << 20, AllocationProperties.ofDevice(0, 0));
    long addresses = driver.virtual().memAddressReserve(2 << 20, 0, 0);
    List<Runnable> calls =
        List.of(
            () -> kernels.libraryGetKernel(library, "any"),
            () -> kernels.libraryGetKernelCount(library),
            () -> driver.virtual().memMap(addresses, 2 << 20, 0, memory),
            () -> driver.virtual().memExportToShareableHandle(memory));
    kernels.libraryUnload(library);
    driver.virtual().memRelease(memory);
    for (Runnable call : calls) {
      call.run();
      assertThat(reports)
          .as("call %d", calls.indexOf(call))
          .extracting(SanitizerReport::misuse)
          .containsExactly(Misuse.DESTROYED_HANDLE);
      reports.clear();
    }
  }

  /** A place for a kernel that the driver left empty has none, which ends with no library. */
  @Test
  void kernelsThatAreListed_endWithTheirLibrary_andNoOthers() {
    CudaDriver listing =
        DriverProxy.of((method, arguments) ->
            method.getName().equals("libraryEnumerateKernels")
                ? new long[] {0x5555, 0}
                : DriverProxy.forward(tiny.driver, method, arguments));
    KernelCalls kernels = SanitizerDriver.reporting(listing, reports::add).kernels();
    long library = kernels.libraryLoadData(new byte[1]);
    assertThat(kernels.libraryEnumerateKernels(library, 2)).containsExactly(0x5555, 0);
    kernels.kernelGetName(0x5555);
    assertSilent();
    kernels.libraryUnload(library);
    kernels.kernelGetName(0x5555);
    assertOnly(Misuse.DESTROYED_HANDLE);
    reports.clear();
    kernels.kernelGetName(0);
    assertThat(reports).noneMatch(report -> report.misuse() == Misuse.DESTROYED_HANDLE);
  }
}

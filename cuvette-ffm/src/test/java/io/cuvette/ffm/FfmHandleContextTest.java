package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Calls on handles leave the thread's context alone, where it is known that they may. */
class FfmHandleContextTest {
  private static final long OTHER = 0xeee;
  private static final MemorySegment NATIVE = Arena.global().allocate(3);

  @TempDir private Path folder;

  /** A call on a device and a stream, event or address. */
  private interface Call {
    void on(CudaDriver driver, int device, long handle);
  }

  private static final List<Call> CALLS_ON_STREAMS =
      List.of(
          CudaDriver::streamQuery,
          CudaDriver::streamSynchronize,
          (driver, device, stream) -> driver.streamWaitEvent(device, stream, 6),
          CudaDriver::streamIsCapturing,
          CudaDriver::streamGetFlags,
          CudaDriver::streamGetPriority,
          CudaDriver::streamGetId,
          (driver, device, stream) -> driver.streamBeginCapture(device, stream, 2),
          CudaDriver::streamEndCapture,
          (driver, device, stream) -> driver.memcpyAsync(device, 8, 9, 4, stream),
          (driver, device, stream) -> driver.memcpyHtoDAsync(device, 8, NATIVE, stream),
          (driver, device, stream) -> driver.memcpyDtoHAsync(device, NATIVE, 8, stream),
          (driver, device, stream) -> driver.memcpyPeerAsync(device, 8, 0, 9, 1, 4, stream),
          (driver, device, stream) -> driver.memsetD8Async(device, 8, (byte) 1, 4, stream),
          (driver, device, stream) -> driver.memsetD16Async(device, 8, (short) 1, 4, stream),
          (driver, device, stream) -> driver.memsetD32Async(device, 8, 1, 4, stream),
          (driver, device, stream) -> driver.launchHostFunc(device, stream, () -> {}),
          (driver, device, stream) -> driver.eventRecord(device, 6, stream),
          (driver, device, stream) -> driver.memAllocAsync(device, 8, stream),
          (driver, device, stream) -> driver.memAllocFromPoolAsync(device, 8, 9, stream),
          (driver, device, stream) -> driver.memFreeAsync(device, 8, stream),
          CudaDriver::streamDestroy);

  private static final List<Call> OTHER_CALLS =
      List.of(
          CudaDriver::eventQuery,
          CudaDriver::eventSynchronize,
          (driver, device, event) -> driver.eventElapsedTime(device, event, 7),
          CudaDriver::eventDestroy,
          CudaDriver::memFree,
          CudaDriver::memFreeHost);

  private static List<Call> allCalls() {
    List<Call> all = new ArrayList<>(CALLS_ON_STREAMS);
    all.addAll(OTHER_CALLS);
    return all;
  }

  private static void assertThreadsContextIsKept(
      StubLibrary library, CudaDriver driver, List<Call> calls, long handle) {
    for (Call call : calls) {
      for (long current : new long[] {0, OTHER}) {
        library.makeCurrent(current);
        library.reset();
        call.on(driver, 1, handle);
        assertThat(library.calls())
            .singleElement()
            .asString()
            .endsWith(" in " + Long.toHexString(current));
        assertThat(library.current()).isEqualTo(current);
      }
    }
  }

  private static void assertContextOfTheDevice(
      StubLibrary library, CudaDriver driver, List<Call> calls, long handle) {
    for (Call call : calls) {
      library.makeCurrent(OTHER);
      library.reset();
      call.on(driver, 1, handle);
      assertThat(library.calls()).hasSize(3); // set, the call, and set again
      assertThat(library.calls().get(1)).endsWith(" in c001");
      assertThat(library.current()).isEqualTo(OTHER);
    }
  }

  private static void retainContexts(CudaDriver driver) {
    driver.memGetInfo(0);
    driver.memGetInfo(1);
  }

  @Test
  void explicitHandles_keepTheContextOfTheThread() {
    StubLibrary library = StubLibrary.compile(folder);
    try (CudaDriver driver = library.open()) {
      retainContexts(driver);
      assertThreadsContextIsKept(library, driver, allCalls(), 3);
      assertThreadsContextIsKept(library, driver, allCalls(), -1L); // handles are unsigned
    }
  }

  @Test
  void specialStreams_getTheContextOfTheDevice() {
    StubLibrary library = StubLibrary.compile(folder);
    try (CudaDriver driver = library.open()) {
      retainContexts(driver);
      for (long stream = 0; stream <= 2; stream++) {
        assertContextOfTheDevice(library, driver, CALLS_ON_STREAMS, stream);
      }
    }
  }

  @Test
  void olderDrivers_alwaysGetTheContextOfTheDevice() {
    StubLibrary library = StubLibrary.compile(folder);
    library.version(12_090);
    try (CudaDriver driver = library.open()) {
      retainContexts(driver);
      assertContextOfTheDevice(library, driver, allCalls(), 5);
    }
  }

  @Test
  void deviceIsChecked_withAndWithoutItsContext() {
    StubLibrary library = StubLibrary.compile(folder);
    try (CudaDriver driver = library.open()) {
      retainContexts(driver);
      library.reset();
      assertThat(allCalls())
          .allSatisfy(call -> {
            assertInvalidDevice(() -> call.on(driver, 2, 5));
            assertInvalidDevice(() -> call.on(driver, -1, 5));
          });
      assertThat(library.calls()).isEmpty();
    }
  }

  private static void assertInvalidDevice(Runnable call) {
    assertThatThrownBy(call::run)
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.INVALID_DEVICE));
  }

  @Test
  void afterClose_callsOnHandlesFail() {
    StubLibrary library = StubLibrary.compile(folder);
    CudaDriver driver = library.open();
    driver.close();
    library.reset();
    assertThat(CALLS_ON_STREAMS)
        .allSatisfy(call ->
            assertThatThrownBy(() -> call.on(driver, 1, 5))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("driver ffm is closed"));
    assertThat(library.calls()).isEmpty();
  }
}

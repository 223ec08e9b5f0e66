package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.driver.CudaException;
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
}

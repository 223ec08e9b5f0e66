package io.cuvette.testkit.stream;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.ScriptedDriver;
import java.util.function.Consumer;

/** Streams that are closed before their work is done leave nothing behind once it is. */
class ShortStreamsTest {
  private static final int STREAMS = 2_000;

  /** Enough for what is looked at in passing, and far below the number of streams. */
  private static final int FEW = 100;

  @CudaTest
  void eventsOfStreamsWithWork_areGone_afterTheNextSynchronize(Cuda cuda, ScriptedDriver driver) {
    everyWayToLook(cuda, driver, CudaDevice::synchronize);
  }

  @CudaTest
  void eventsOfStreamsWithWork_areGone_afterAnotherStreamWasWaitedFor(
      Cuda cuda, ScriptedDriver driver) {
    everyWayToLook(cuda, driver, device -> device.nullStream().synchronize());
  }

  @CudaTest
  void eventsOfStreamsWithWork_areGone_whileOtherStreamsComeAndGo(
      Cuda cuda, ScriptedDriver driver) {
    everyWayToLook(
        cuda,
        driver,
        device -> {
          for (int i = 0; i < STREAMS; i++) {
            device.createStream().close();
          }
        });
  }

  private static void everyWayToLook(Cuda cuda, ScriptedDriver driver, Consumer<CudaDevice> look) {
    CudaDevice device = cuda.device(0);
    try (CudaStream first = shortStream(device);
        CudaEvent open = device.createEvent();
        Gate gate = Gate.on(first)) {
      first.record(open);
      for (int i = 0; i < STREAMS; i++) {
        shortStream(device, open);
      }
      assertThat(events(driver)).as("held back").isGreaterThan(STREAMS);
      gate.open();
      cuda.driver().devices().ctxSynchronize(0); // past the library, which is told nothing
      look.accept(device);
      assertThat(events(driver)).as("events left").isLessThan(FEW);
    }
  }

  private static void shortStream(CudaDevice device, CudaEvent open) {
    try (CudaStream stream = shortStream(device)) {
      stream.waitFor(open); // which is work, and not done
    }
  }

  /** On a GPU, 57 blocking streams that wait take all that the driver has for such. */
  private static CudaStream shortStream(CudaDevice device) {
    return device.createStream(StreamOptions.NON_BLOCKING);
  }

  @CudaTest
  void streamsWithWorkOneAfterTheOther_neverHaveManyEvents(Cuda cuda, ScriptedDriver driver) {
    CudaDevice device = cuda.device(0);
    long most = 0;
    try (Buffer buffer = cuda.allocate(64)) {
      for (int i = 0; i < STREAMS; i++) {
        try (CudaStream stream = device.createStream()) {
          buffer.fill((byte) 1, stream);
        }
        cuda.driver().devices().ctxSynchronize(0); // the device keeps up
        most = Math.max(most, events(driver));
      }
    }
    assertThat(most).isLessThan(FEW);
  }

  /** A marker that could not be recorded is forgotten with its event. */
  @CudaTest
  void eventThatCannotBeRecorded_isDestroyed(Cuda cuda, ScriptedDriver driver, CudaStream first) {
    CudaStream stream = cuda.device(0).createStream();
    try (Gate _ = Gate.on(first)) {
      stream.waitFor(first);
      long before = events(driver);
      driver.fail("eventRecord", CudaStatus.OUT_OF_MEMORY);
      assertThatThrownBy(stream::close).isInstanceOf(CudaException.class);
      driver.unscript("eventRecord");
      assertThat(events(driver)).isEqualTo(before);
    }
    stream.close();
    cuda.device(0).synchronize();
  }

  /** How many there are. */
  private static long events(ScriptedDriver driver) {
    return driver.count("eventCreate") - driver.count("eventDestroy");
  }
}

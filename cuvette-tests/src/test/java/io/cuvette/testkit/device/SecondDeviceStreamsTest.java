package io.cuvette.testkit.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.EventOptions;
import io.cuvette.Registration;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.FirstDevice;
import java.util.List;

/** Streams on one device, whichever is the first: of others, captured, exposed and failing ones. */
class SecondDeviceStreamsTest {
  private static final int NON_BLOCKING = 1;
  private static final int RELAXED = 2;

  private static void wrapTwice(CudaDevice device, long handle) {
    for (int i = 0; i < 2; i++) { // the first time it is closed, nothing is known of it any more
      CudaStream wrapper = device.wrapStream(handle, null);
      CudaStream another = device.wrapStream(handle, null);
      assertThat(another).isEqualTo(wrapper);
      another.close();
      wrapper.close();
    }
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void streamsOfOthers_areTheBusinessOfTheirDeviceAlone(Cuda cuda, ScriptedDriver script) {
    FirstDevice.watch(script);
    CudaDriver driver = cuda.driver();
    CudaDevice device = cuda.device(1);
    long handle = driver.streams().streamCreateWithPriority(1, NON_BLOCKING, 0);
    wrapTwice(device, handle);
    driver.captures().streamBeginCapture(1, handle, RELAXED);
    wrapTwice(device, handle);
    driver.graphs().graphDestroy(driver.captures().streamEndCapture(1, handle));
    try (CudaStream wrapper = device.wrapStream(handle, null)) {
      wrapper.addCallback(() -> {}).join(); // which asks whether it is a blocking one
      wrapper.synchronize();
    }
    driver.streams().streamDestroy(1, handle);
    assertThat(script.notes()).isEmpty();
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void streamOfAnotherDevice_isRefusedByTheDeviceThatHasItNot(
      Cuda cuda, ScriptedDriver script, CudaStream first, @OnDevice(1) CudaStream second) {
    assertThatThrownBy(() -> cuda.device(0).wrapStream(second.handle(), null))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("belongs to device 1 (expected: device 0)");
    assertThatThrownBy(() -> cuda.device(1).wrapStream(first.handle(), null))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("belongs to device 0 (expected: device 1)");
    FirstDevice.watch(script);
    assertThat(cuda.device(1).wrapStream(second.handle(), null)).isEqualTo(second);
    assertThat(script.notes()).isEmpty();
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void streamThatCannotBeMade_isDestroyedOnItsDevice(Cuda cuda, ScriptedDriver script) {
    CudaDevice device = cuda.device(1);
    FirstDevice.watch(script);
    for (Throwable failure :
        List.of(
            new CudaException(CudaStatus.NOT_PERMITTED, "streamGetId", "scripted by the test"),
            new OutOfMemoryError("the test's"))) {
      script.answer(
          "streamGetId",
          _ -> {
            throw failure;
          });
      assertThatThrownBy(device::createStream).isSameAs(failure);
    }
    assertThat(script.count("streamCreateWithPriority")).isEqualTo(2);
    assertThat(script.count("streamDestroy")).isEqualTo(2);
    assertThat(script.notes()).isEmpty();
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void capturesLeftOpen_endOnTheirDevice(Cuda cuda, ScriptedDriver script) {
    FirstDevice.watch(script);
    CudaDriver driver = cuda.driver();
    CudaDevice device = cuda.device(1);
    CudaStream own = device.createStream(StreamOptions.NON_BLOCKING);
    own.beginCapture(CaptureOptions.DEFAULTS);
    own.close();
    long handle = driver.streams().streamCreateWithPriority(1, NON_BLOCKING, 0);
    CudaStream wrapper = device.wrapStream(handle, null);
    wrapper.beginCapture(CaptureOptions.DEFAULTS);
    wrapper.close();
    assertThat(driver.captures().streamIsCapturing(1, handle)).isZero();
    driver.streams().streamDestroy(1, handle);
    assertThat(script.notes()).isEmpty();
  }

  /** A callback of it begins in another stream, which waits for its work. */
  @CudaTest(devices = 2, simulatedOnly = true)
  void callbacksOfExposedStreams_areTheBusinessOfTheirDeviceAlone(
      ScriptedDriver script, @OnDevice(1) @NonBlocking CudaStream stream) {
    FirstDevice.watch(script);
    assertThat(stream.handle()).isNotZero();
    for (int i = 0; i < 2; i++) {
      try (Gate _ = Gate.on(stream)) {
        stream.addCallback(() -> {});
      }
      stream.synchronize();
    }
    stream.onComplete().join();
    assertThat(script.notes()).isEmpty();
  }

  /** The first one tries whether the device can wait. */
  @CudaTest(devices = 2, simulatedOnly = true)
  void whetherADeviceCanWaitAtAWord_isKnownForEach(
      ScriptedDriver script, CudaStream first, @OnDevice(1) CudaStream second) {
    script.answer(
        "streamWaitValue32",
        call -> {
          if (call.number("device") == 0) {
            throw new CudaException(CudaStatus.NOT_SUPPORTED, "streamWaitValue32", "");
          }
          return call.proceed();
        });
    script.note("streamWaitValue32", call -> "device " + call.number("device"));
    for (int i = 0; i < 2; i++) {
      first.addCallback(() -> {}).join();
      second.addCallback(() -> {}).join();
    }
    assertThat(script.notes()).containsExactly("device 0", "device 1", "device 1", "device 1");
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void eventsTimesAndProfiles_areTheBusinessOfTheirDeviceAlone(
      ScriptedDriver script, @OnDevice(1) CudaStream stream) {
    FirstDevice.watch(script);
    CudaDevice device = stream.device();
    try (Registration _ = device.profiler().profile();
        CudaEvent start = device.createEvent();
        CudaEvent end = device.createEvent();
        CudaEvent shared = device.createEvent(EventOptions.ORDER_ONLY.withInterprocess(true))) {
      start.record(stream);
      end.record(stream);
      stream.synchronize();
      assertThat(CudaEvent.elapsedMillis(start, end)).isNotNegative();
      assertThat(shared.descriptor().deviceUuid()).isEqualTo(device.uuid());
      device.legacyStream().synchronize();
    }
    assertThat(script.count("profilerStart")).isOne();
    assertThat(script.count("profilerStop")).isOne();
    assertThat(script.notes()).isEmpty();
  }

  /** Who cannot allocate cannot free either, which would wait for all. */
  @CudaTest(devices = 2, simulatedOnly = true)
  void fullDevice_isWaitedForItself(ScriptedDriver script, @OnDevice(1) CudaStream stream) {
    FirstDevice.watch(script);
    script.fail("memAlloc", CudaStatus.OUT_OF_MEMORY);
    stream.device().synchronize();
    assertThat(script.count("ctxSynchronize")).isOne();
    assertThat(script.notes()).isEmpty();
  }

  /** The gate opens by itself in half a minute. */
  @CudaTest(devices = 2, simulatedOnly = true)
  void deviceIsWaitedFor_whateverTheOtherIsAt(
      @NonBlocking CudaStream first, @OnDevice(1) CudaStream second) {
    try (Gate _ = Gate.on(first)) {
      second.device().synchronize();
      assertThat(first.isDone()).isFalse();
    }
    first.synchronize();
  }
}

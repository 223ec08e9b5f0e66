package io.cuvette.testkit.capture;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.EventOptions;
import io.cuvette.MemoryPool;
import io.cuvette.Scope;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Capture;
import io.cuvette.testkit.support.Graph;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.assertj.core.api.SoftAssertions;

/** Whatever is asked about a stream that is capturing, its capture goes on. */
class CapturingStreamTest {
  private static final int RELAXED = 2;
  private static final int DISABLE_TIMING = 2;
  private static final int BYTES = 4096;

  /** What can be asked of a stream, or be done with it; it may be refused. */
  private static Map<String, Consumer<CudaStream>> everything() {
    Map<String, Consumer<CudaStream>> things = new LinkedHashMap<>();
    things.put("wrapStream", s -> s.device().wrapStream(s.handle(), null).close());
    things.put("isNonBlocking", s -> assertThat(s.isNonBlocking()).isNotNull());
    things.put("priority", s -> assertThat(s.priority()).isNotPositive());
    things.put("isCapturing", s -> assertThat(s.isCapturing()).isTrue());
    things.put("isDone", CudaStream::isDone);
    things.put("synchronize", CudaStream::synchronize);
    things.put("device().synchronize()", s -> s.device().synchronize());
    things.put("addCallback", s -> s.addCallback(() -> {}));
    things.put("onComplete", CudaStream::onComplete);
    things.put("record", CapturingStreamTest::recordAndAsk);
    things.put("toString", CudaStream::toString);
    things.put("hashCode", CudaStream::hashCode);
    return things;
  }

  private static void recordAndAsk(CudaStream stream) {
    try (CudaEvent event = stream.record()) {
      assertThatThrownBy(event::isDone)
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("isDone: %s was recorded in %s, which is capturing a graph", event, stream);
      assertThatThrownBy(event::synchronize)
          .isInstanceOf(IllegalStateException.class)
          .hasMessage(
              "synchronize: %s was recorded in %s, which is capturing a graph", event, stream);
    }
  }

  /** Both that which is known already and that which is asked for the first time. */
  private static void checkAll(CudaDriver driver, CudaDevice device, long handle) {
    SoftAssertions all = new SoftAssertions();
    for (Map.Entry<String, Consumer<CudaStream>> each : everything().entrySet()) {
      try (CudaStream before = device.wrapStream(handle, null)) {
        check(all, driver, each, before);
      }
      driver.captures().streamBeginCapture(device.id(), handle, RELAXED);
      CudaStream during = device.wrapStream(handle, null);
      driver.graphs().graphDestroy(driver.captures().streamEndCapture(device.id(), handle));
      try (during;
          CudaStream after = device.wrapStream(handle, null)) {
        check(all, driver, each, during);
        assertThat(after).isEqualTo(during);
      }
    }
    all.assertAll();
  }

  private static void check(
      SoftAssertions all,
      CudaDriver driver,
      Map.Entry<String, Consumer<CudaStream>> each,
      CudaStream stream) {
    int device = stream.device().id();
    driver.captures().streamBeginCapture(device, stream.handle(), RELAXED);
    try {
      each.getValue().accept(stream);
    } catch (IllegalStateException e) {
      all.assertThat(e).as(each.getKey()).hasMessageContaining("is capturing a graph");
    }
    all.assertThat(driver.captures().streamIsCapturing(device, stream.handle()))
        .as(each.getKey())
        .isOne();
    try {
      driver.graphs().graphDestroy(driver.captures().streamEndCapture(device, stream.handle()));
    } catch (CudaException e) {
      all.fail(each.getKey(), e);
    }
  }

  @CudaTest
  void streamsOfOthers(Cuda cuda) {
    CudaDriver driver = cuda.driver();
    for (int flags = 0; flags <= 1; flags++) {
      long handle = driver.streams().streamCreateWithPriority(0, flags, 0);
      checkAll(driver, cuda.device(0), handle);
      driver.streams().streamDestroy(0, handle);
    }
  }

  @CudaTest
  void streamsOfTheLibrary(Cuda cuda) {
    for (StreamOptions options :
        new StreamOptions[] {StreamOptions.DEFAULTS, StreamOptions.NON_BLOCKING}) {
      try (CudaStream stream = cuda.device(0).createStream(options)) {
        checkAll(cuda.driver(), cuda.device(0), stream.handle());
        stream.synchronize();
      }
    }
  }

  /** It stands for the same stream as those that were made before and after the capture. */
  @CudaTest
  void wrapperMadeInTheCapture_isOfTheSameStream(Cuda cuda) {
    CudaDriver driver = cuda.driver();
    long handle = driver.streams().streamCreateWithPriority(0, 1, 0);
    CudaDevice device = cuda.device(0);
    try (MemoryPool pool = new MemoryPool(cuda)) {
      driver.captures().streamBeginCapture(0, handle, RELAXED);
      CudaStream during = device.wrapStream(handle, null);
      assertThatThrownBy(() -> during.isNonBlocking()).hasMessageContaining("is capturing");
      driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, handle));
      assertThat(during.isNonBlocking()).isTrue();
      try (CudaStream after = device.wrapStream(handle, null)) {
        assertThat(after).isEqualTo(during);
        Buffer buffer = pool.allocate(BYTES, during);
        long address = buffer.address();
        buffer.close();
        try (Buffer again = pool.allocate(BYTES, after)) {
          assertThat(again.address()).isEqualTo(address);
        }
      }
      during.close();
      CudaStream other = device.wrapStream(handle, null);
      other.synchronize();
      other.close();
      assertThat(other.isClosed()).isTrue();
    }
    driver.streams().streamDestroy(0, handle);
  }

  @CudaTest
  void questionWhetherItIsDone_isRefused_asAWaitIs(@NonBlocking CudaStream stream) {
    Capture.of(
        stream,
        () -> {
          assertThatThrownBy(stream::isDone)
              .isInstanceOf(IllegalStateException.class)
              .hasMessageStartingWith("isDone: ")
              .hasMessageContaining("is capturing a graph");
          assertThatThrownBy(stream::synchronize)
              .isInstanceOf(IllegalStateException.class)
              .hasMessageStartingWith("synchronize: ");
        });
  }

  @CudaTest
  void callbacksAndFutures_areRefusedByTheirNames(@NonBlocking CudaStream stream) {
    Capture.of(
        stream,
        () -> {
          assertThatThrownBy(() -> stream.addCallback(() -> {}))
              .isInstanceOf(IllegalStateException.class)
              .hasMessageStartingWith("addCallback: ");
          assertThatThrownBy(stream::onComplete)
              .isInstanceOf(IllegalStateException.class)
              .hasMessageStartingWith("onComplete: ");
        });
  }

  /** The capture of others, which the library knows nothing of before. */
  @CudaTest
  void streamThatWaitsForAnEventOfACapture_keepsForItsGraphWhatItUsesFromThenOn(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    CudaDriver driver = cuda.driver();
    long theirs = driver.streams().streamCreateWithPriority(0, 1, 0);
    long event = driver.events().eventCreate(0, DISABLE_TIMING);
    Buffer used = pool.allocate(BYTES, stream);
    stream.synchronize();
    driver.captures().streamBeginCapture(0, theirs, RELAXED);
    driver.events().eventRecord(0, event, theirs);
    stream.waitFor(event);
    used.fill((byte) 1, stream);
    used.close();
    assertThat(pool.stats().pendingBytes()).isEqualTo(BYTES);
    driver.events().eventRecord(0, event, stream.handle());
    driver.streams().streamWaitEvent(0, theirs, event);
    driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, theirs));
    driver.events().eventDestroy(0, event);
    driver.streams().streamDestroy(0, theirs);
    Graph.awaitGone(pool, stream);
  }

  /** The same through an event of the library, whose handle was given out. */
  @CudaTest(simulatedOnly = true)
  void streamThatWaitsForAnEventThatOthersRecordedInACapture_isOfThat(
      Cuda cuda, @NonBlocking CudaStream stream) {
    CudaDriver driver = cuda.driver();
    long theirs = driver.streams().streamCreateWithPriority(0, 1, 0);
    try (CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY)) {
      stream.record(event);
      long handle = event.handle();
      driver.captures().streamBeginCapture(0, theirs, RELAXED);
      driver.events().eventRecord(0, handle, theirs);
      stream.waitFor(event);
      assertThatThrownBy(stream::synchronize).hasMessageContaining("is capturing a graph");
      stream.waitFor(event); // which is of its capture, as the driver knows
      stream.record(event);
      driver.streams().streamWaitEvent(0, theirs, handle);
      driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, theirs));
    }
    driver.streams().streamDestroy(0, theirs);
    stream.synchronize();
  }

  /** A copy that is refused only by its wait would be in the graph. */
  @CudaTest
  void waitingCopiesAndFills_areRefused_beforeTheyAreInTheGraph(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    try (Buffer buffer = cuda.allocate(64);
        Buffer other = cuda.allocate(64);
        Arena arena = Arena.ofConfined();
        Scope _ = stream.use()) {
      MemorySegment heap = MemorySegment.ofArray(new byte[64]);
      MemorySegment outside = arena.allocate(64);
      driver.note("memcpyAsync", "memcpyHtoDAsync", "memcpyDtoHAsync", "memsetD8Async");
      Capture.of(
          stream,
          () -> {
            for (Runnable call :
                new Runnable[] {
                  () -> buffer.copyFrom(other),
                  () -> buffer.copyTo(other),
                  () -> buffer.copyFrom(heap),
                  () -> buffer.copyTo(heap),
                  () -> buffer.copyFrom(outside),
                  () -> buffer.copyTo(outside),
                  () -> buffer.fill((byte) 1)
                }) {
              assertThatThrownBy(call::run)
                  .isInstanceOf(IllegalStateException.class)
                  .hasMessageContaining("is capturing a graph");
            }
          });
      assertThat(driver.notes()).isEmpty();
    }
  }

  /** The library keeps no stream of a thread, so that it cannot name it. */
  @CudaTest(simulatedOnly = true)
  void eventThatAThreadsStreamCaptures_isNotAskedByAnyThread(Cuda cuda) {
    try (CudaEvent event = cuda.device(0).createEvent()) {
      CudaStream stream = cuda.device(0).perThreadStream();
      Capture.of(
          stream,
          () -> {
            event.record(stream);
            checkNotAsked(event);
            CompletableFuture.runAsync(() -> checkNotAsked(event)).join();
          });
    }
  }

  private static void checkNotAsked(CudaEvent event) {
    Map<String, Runnable> calls =
        Map.of("isDone", event::isDone, "synchronize", event::synchronize);
    calls.forEach((name, call) ->
        assertThatThrownBy(call::run)
            .isInstanceOf(IllegalStateException.class)
            .hasMessage(
                "%s: %s was recorded in a thread's stream, which is capturing a graph",
                name, event));
  }

  /** Which the driver says of the event alone: its record was in order. */
  @CudaTest(simulatedOnly = true)
  void eventWhoseCaptureBecomesInvalidAtOnce_isNotAsked(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    CudaDriver calls = cuda.driver();
    long handle = stream.handle();
    driver.answer(
        "eventRecord",
        call -> {
          Object answer = call.proceed();
          assertThatThrownBy(() -> calls.streams().streamSynchronize(0, handle))
              .isInstanceOf(CudaException.class);
          return answer;
        });
    try (CudaEvent event = cuda.device(0).createEvent()) {
      calls.captures().streamBeginCapture(0, handle, RELAXED);
      event.record(stream);
      driver.unscript("eventRecord");
      assertThatThrownBy(event::isDone)
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("isDone: %s was recorded in %s, which is capturing a graph", event, stream);
      assertThatThrownBy(() -> calls.captures().streamEndCapture(0, handle))
          .isInstanceOf(CudaException.class);
    }
  }

  @CudaTest(simulatedOnly = true)
  void recordInAStreamThatNobodyCanCapture_asksNothingAboutCaptures(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    try (CudaEvent event = cuda.device(0).createEvent()) {
      for (CudaStream each : new CudaStream[] {stream, cuda.device(0).nullStream()}) {
        long before = driver.count("streamIsCapturing") + driver.count("streamGetCaptureInfo");
        event.record(each);
        event.synchronize();
        assertThat(driver.count("streamIsCapturing") + driver.count("streamGetCaptureInfo"))
            .as("%s", each)
            .isEqualTo(before);
      }
    }
  }

  /** What fails for another reason is not explained by a capture. */
  @CudaTest(simulatedOnly = true)
  void failureOfAnEventThatNoCaptureHas_isToldAsItIs(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    try (CudaEvent event = stream.record()) {
      Map<String, Runnable> calls =
          Map.of("eventQuery", event::isDone, "eventSynchronize", event::synchronize);
      calls.forEach((name, call) -> {
        driver.fail(name, CudaStatus.NOT_PERMITTED, 1);
        assertThatThrownBy(call::run)
            .isInstanceOf(CudaException.class)
            .satisfies(e -> assertThat(e.getMessage()).doesNotContain("capture"));
      });
    }
  }

  @CudaTest
  void eventOfACaptureThatIsOver_saysSo(
      Cuda cuda, @NonBlocking CudaStream stream, @NonBlocking CudaStream other) {
    CudaDriver driver = cuda.driver();
    try (CudaEvent event = cuda.device(0).createEvent()) {
      driver.captures().streamBeginCapture(0, stream.handle(), RELAXED);
      stream.record(event);
      driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, stream.handle()));
      String text = "the event was last recorded in a capture";
      assertThatThrownBy(event::isDone).hasMessageContaining(text);
      assertThatThrownBy(event::synchronize).hasMessageContaining(text);
      assertThatThrownBy(() -> other.waitFor(event)).hasMessageContaining(text);
      stream.record(event);
      event.synchronize();
      assertThat(event.isDone()).isTrue();
      other.waitFor(event);
    }
  }
}

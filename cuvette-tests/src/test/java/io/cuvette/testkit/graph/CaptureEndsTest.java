package io.cuvette.testkit.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CaptureMode;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.TransferCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingTransfers;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Forgetting;
import io.cuvette.testkit.support.Graph;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Captures that streams are joined to wrongly, or that end in an unusual way. */
class CaptureEndsTest {
  private static final int BYTES = 4096;

  @CudaTest
  void waitForAnotherCapture_isRefused_andBothGoOn(
      MemoryPool pool, @NonBlocking CudaStream stream, @NonBlocking CudaStream other) {
    try (Buffer buffer = pool.allocate(BYTES, stream)) {
      stream.beginCapture(CaptureOptions.DEFAULTS);
      other.beginCapture(CaptureOptions.DEFAULTS);
      buffer.fill((byte) 1, stream);
      assertThatThrownBy(() -> other.waitFor(stream))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage(
              "waitFor: %s is capturing a graph, and the work of %s is part of another"
                      .formatted(other, stream)
                  + " (expected: work of the same capture)");
      other.endCapture().close();
      try (CudaGraph graph = stream.endCapture();
          CudaGraphExec executable = graph.instantiate()) {
        executable.launch(stream);
        stream.synchronize();
        assertThat(Bytes.areAll(buffer, 1)).isTrue();
      }
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void waitForWorkOutsideOfTheCapture_isRefused_andItGoesOn(
      Cuda cuda, @NonBlocking CudaStream stream, @NonBlocking CudaStream other) {
    try (CudaEvent before = other.record();
        CudaEvent never = cuda.device(0).createEvent();
        CudaEvent captured = cuda.device(0).createEvent()) {
      stream.capture(() -> stream.record(captured)).close();
      stream
          .capture(() -> {
            for (CudaEvent event : List.of(before, captured)) {
              assertThatThrownBy(() -> stream.waitFor(event))
                  .isInstanceOf(IllegalStateException.class)
                  .hasMessageContaining("the work of " + event + " is ")
                  .hasMessageContaining("(expected: ");
            }
            for (CudaStream each : List.of(other, cuda.device(0).nullStream())) {
              assertThatThrownBy(() -> stream.waitFor(each))
                  .isInstanceOf(IllegalStateException.class)
                  .hasMessageContaining("the work of " + each + " is not part of that");
            }
            stream.waitFor(never);
            stream.waitFor(stream);
          })
          .close();
    }
  }

  @CudaTest
  void bodyThatClosesItsWrapper_endsTheCapture(Cuda cuda, @NonBlocking CudaStream stream) {
    CudaStream wrapper = cuda.device(0).wrapStream(stream.handle(), stream);
    assertThatThrownBy(() -> wrapper.capture(wrapper::close))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageEndingWith("is closed");
    assertThat(stream.isCapturing()).isFalse();
  }

  @CudaTest
  void captureOfAStreamOfOthers_endsWithItsLastWrapper(Cuda cuda) {
    long handle = cuda.driver().streams().streamCreateWithPriority(0, 1, 0);
    CudaStream wrapper = cuda.device(0).wrapStream(handle, null);
    wrapper.beginCapture(CaptureOptions.DEFAULTS);
    CudaStream second = cuda.device(0).wrapStream(handle, null);
    wrapper.close();
    assertThat(second.isCapturing()).isTrue();
    second.close();
    assertThat(cuda.driver().captures().streamIsCapturing(0, handle)).isZero();
    cuda.driver().streams().streamDestroy(0, handle);
  }

  @CudaTest
  void captureOfOthers_goesOnWithoutAWrapper(Cuda cuda) {
    long handle = cuda.driver().streams().streamCreateWithPriority(0, 1, 0);
    try (CudaStream wrapper = cuda.device(0).wrapStream(handle, null)) {
      wrapper.capture(() -> {}).close();
      cuda.driver().captures().streamBeginCapture(0, handle, 2);
    }
    assertThat(cuda.driver().captures().streamIsCapturing(0, handle)).isNotZero();
    cuda.driver().graphs().graphDestroy(cuda.driver().captures().streamEndCapture(0, handle));
    cuda.driver().streams().streamDestroy(0, handle);
  }

  @CudaTest
  void captureThatOthersBeganWhereOneOfThisLibraryEnded_goesOnWithoutAWrapper(Cuda cuda) {
    CudaDriver others = cuda.driver();
    long handle = others.streams().streamCreateWithPriority(0, 1, 0);
    try (CudaStream wrapper = cuda.device(0).wrapStream(handle, null)) {
      wrapper.beginCapture(CaptureOptions.DEFAULTS);
      others.graphs().graphDestroy(others.captures().streamEndCapture(0, handle));
      others.captures().streamBeginCapture(0, handle, 2);
    }
    assertThat(others.captures().streamIsCapturing(0, handle)).isNotZero();
    others.graphs().graphDestroy(others.captures().streamEndCapture(0, handle));
    others.streams().streamDestroy(0, handle);
  }

  /** Its last record may be theirs, and in the capture. */
  @CudaTest
  void eventThatOthersHave_isWaitedForInACapture(
      Cuda cuda, @NonBlocking CudaStream stream, @NonBlocking CudaStream other) {
    try (CudaEvent event = other.record()) {
      long handle = event.handle();
      stream
          .capture(() -> {
            cuda.driver().events().eventRecord(0, handle, stream.handle());
            stream.waitFor(event);
          })
          .close();
    }
  }

  /** What it took is known by the stream alone then. */
  @CudaTest
  void memoryOfACaptureThatOthersEnd_comesBackWithTheEndOfItsStream(Cuda cuda, MemoryPool pool) {
    CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    CudaDriver others = cuda.driver();
    stream.beginCapture(CaptureOptions.DEFAULTS.withMode(CaptureMode.RELAXED));
    pool.allocate(BYTES, stream).close();
    long graph = others.captures().streamEndCapture(0, stream.handle());
    others.graphs().graphDestroy(graph);
    stream.close();
    Graph.awaitGone(pool, stream);
  }

  /** Nobody but the thread that began the capture can end it, and with it the stream. */
  @Test
  void streamThatAnotherThreadCloses_isGoneWhenItsCaptureIsEnded() throws Exception {
    try (ScriptedDriver script = new ScriptedDriver();
        Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over))) {
      CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      stream.beginCapture(CaptureOptions.DEFAULTS.withMode(CaptureMode.THREAD_LOCAL));
      Thread.ofPlatform().start(stream::close).join();
      assertThat(script.count("streamDestroy")).isZero();
      assertThatThrownBy(stream::endCapture)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageEndingWith("is closed");
      assertThat(script.count("streamDestroy")).isOne();
    }
  }

  /** That costs no call, and waits for nobody. */
  @CudaTest(simulatedOnly = true)
  void streamThatNobodyCanCapture_isNotAskedAboutCaptures(Cuda cuda, ScriptedDriver script) {
    CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    CudaStream given = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    assertThat(given.handle()).isNotZero();
    script.note("streamIsCapturing", "streamGetCaptureInfo", "streamDestroy");
    stream.close();
    assertThat(script.takeNotes()).containsExactly("streamDestroy");
    given.close();
    assertThat(script.takeNotes()).contains("streamGetCaptureInfo").endsWith("streamDestroy");
  }

  /** There is nothing left to end, and nobody to leave that to. */
  @CudaTest(simulatedOnly = true)
  void streamWhoseCaptureIsInvalid_isGoneOnceItIsClosed(Cuda cuda, ScriptedDriver script) {
    CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    stream.beginCapture(CaptureOptions.DEFAULTS);
    assertThatThrownBy(() -> cuda.driver().streams().streamSynchronize(0, stream.handle()))
        .isInstanceOf(CudaException.class);
    long destroyed = script.count("streamDestroy");
    stream.close();
    assertThat(script.count("streamDestroy")).isEqualTo(destroyed + 1);
    assertThat(cuda.leaksFound()).isZero();
  }

  /** Whoever has no handle of it could not have begun another: it is asked about all the same. */
  @CudaTest(simulatedOnly = true)
  void streamWhoseCaptureEndsWithAnError_isGoneOnceItIsClosed(Cuda cuda, ScriptedDriver script) {
    CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    stream.beginCapture(CaptureOptions.DEFAULTS);
    script.answer(
        "streamEndCapture",
        call -> {
          call.below().graphs().graphDestroy((long) call.proceed());
          throw new CudaException(CudaStatus.UNKNOWN, call.name(), "on purpose");
        });
    long destroyed = script.count("streamDestroy");
    stream.close();
    script.unscript("streamEndCapture");
    assertThat(script.count("streamDestroy")).isEqualTo(destroyed + 1);
    assertThat(cuda.leaksFound()).isZero();
  }

  /** As one that was closed before: nobody could look for the end of a capture. */
  @CudaTest(simulatedOnly = true)
  void streamThatADriverDoesNotAnswerAbout_isGoneOnceItIsClosed(Cuda cuda, ScriptedDriver script) {
    CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    assertThat(stream.handle()).isNotZero();
    script.answer(
        "streamGetCaptureInfo",
        _ -> {
          throw new IllegalStateException("closed on purpose");
        });
    long destroyed = script.count("streamDestroy");
    stream.close();
    assertThat(script.count("streamDestroy")).isEqualTo(destroyed + 1);
    script.unscript("streamGetCaptureInfo");
  }

  /** As with a GPU, which knows addresses alone, nobody else keeps the segment. */
  private static CudaDriver byAddress(CudaDriver driver) {
    return new ForwardingDriver(driver) {
      @Override
      public TransferCalls transfers() {
        return new ForwardingTransfers(delegate().transfers()) {
          @Override
          @SuppressWarnings("restricted")
          public void memcpyHtoDAsync(int device, long target, MemorySegment source, long stream) {
            MemorySegment bytes =
                MemorySegment.ofAddress(source.address()).reinterpret(source.byteSize());
            super.memcpyHtoDAsync(device, target, bytes, stream);
          }
        };
      }
    };
  }

  @Test
  void arenaOfTheCollector_staysAsLongAsTheGraphCanRun() throws InterruptedException {
    CudaOptions options = CudaOptions.simulated().withDecorator(CaptureEndsTest::byAddress);
    try (Cuda cuda = Cuda.open(options);
        CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        Buffer buffer = cuda.allocate(BYTES, stream)) {
      List<WeakReference<MemorySegment>> kept = new ArrayList<>();
      CudaGraph graph =
          stream.capture(() -> {
            MemorySegment segment = Arena.ofAuto().allocate(BYTES).fill((byte) 5);
            kept.add(new WeakReference<>(segment));
            buffer.copyFrom(segment, stream);
          });
      CudaGraphExec executable = graph.instantiate();
      graph.close();
      for (int i = 0; i < 4; i++) {
        System.gc();
        assertThat(kept.getFirst().get()).isNotNull();
      }
      executable.launch(stream);
      stream.synchronize();
      assertThat(Bytes.areAll(buffer, 5)).isTrue();
      executable.close();
      assertThat(
              Forgetting.collectUntil(() -> {
                cuda.leaksFound();
                return kept.getFirst().get() == null;
              }))
          .isTrue();
    }
  }
}

package io.cuvette.testkit.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.EventOptions;
import io.cuvette.MemoryPool;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.ForwardingCaptures;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import java.util.Map;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Calls that begin or end a capture and fail, before they took effect or after: what the library
 * knows of the stream from then on is what the driver says.
 */
class FailingCaptureTest {
  private static final int BYTES = 4096;

  /** What fails next. */
  private enum Failure {
    NONE,
    BEGIN,
    BEGIN_AFTER,
    INFO,
    END,
    END_AFTER
  }

  private Failure next = Failure.NONE;
  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(this::failing));
  private final CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final Buffer buffer = cuda.allocate(BYTES, stream);

  @AfterEach
  void close() {
    buffer.close();
    stream.close();
    cuda.close();
  }

  private CudaDriver failing(CudaDriver driver) {
    CaptureCalls captures =
        new ForwardingCaptures(driver.captures()) {
          @Override
          public void streamBeginCapture(int device, long of, int mode) {
            fail(Failure.BEGIN);
            super.streamBeginCapture(device, of, mode);
            fail(Failure.BEGIN_AFTER);
          }

          @Override
          public CaptureInfo streamGetCaptureInfo(int device, long of) {
            fail(Failure.INFO);
            return super.streamGetCaptureInfo(device, of);
          }

          @Override
          public long streamEndCapture(int device, long of) {
            fail(Failure.END);
            long graph = super.streamEndCapture(device, of);
            fail(Failure.END_AFTER);
            return graph;
          }
        };
    return new ForwardingDriver(driver) {
      @Override
      public CaptureCalls captures() {
        return captures;
      }
    };
  }

  private void fail(Failure failure) {
    if (next == failure) {
      next = Failure.NONE;
      throw new CudaException(CudaStatus.UNKNOWN.code(), failure.name());
    }
  }

  private void fails(Failure failure, Runnable call) {
    next = failure;
    assertThatThrownBy(call::run)
        .isInstanceOf(CudaException.class)
        .hasMessageContaining(failure.name());
  }

  private void begin() {
    stream.beginCapture(CaptureOptions.DEFAULTS);
  }

  private void checkHolds(int value) {
    stream.synchronize();
    assertThat(Bytes.areAll(buffer, value)).isTrue();
  }

  /** The stream works, within captures and outside. */
  private void checkUsable() {
    buffer.fill((byte) 1, stream);
    checkHolds(1);
    try (CudaGraph graph = stream.capture(() -> buffer.fill((byte) 2, stream));
        CudaGraphExec executable = graph.instantiate()) {
      checkHolds(1);
      executable.launch(stream);
      checkHolds(2);
    }
  }

  @Test
  void beginThatFails_leavesTheStreamAsItWas() {
    fails(Failure.BEGIN, this::begin);

    checkUsable();
  }

  @Test
  void beginThatFailsLate_isACaptureThatGoesOn() {
    fails(Failure.BEGIN_AFTER, this::begin);

    assertThatThrownBy(this::begin)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is capturing a graph already");
    assertThatThrownBy(stream::synchronize)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is capturing a graph");
    stream.endCapture().close();
    checkUsable();
  }

  /** What it uses could not be kept for its graph. */
  @Test
  void captureThatCannotBeTold_endsAtOnce() {
    fails(Failure.INFO, this::begin);

    assertThat(stream.isCapturing()).isFalse();
    checkUsable();
  }

  @Test
  void endThatFails_leavesTheCapture() {
    begin();
    buffer.fill((byte) 3, stream);
    fails(Failure.END, stream::endCapture);

    assertThatThrownBy(stream::isDone)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is capturing a graph");
    try (CudaGraph graph = stream.endCapture();
        CudaGraphExec executable = graph.instantiate()) {
      executable.launch(stream);
      checkHolds(3);
    }
    checkUsable();
  }

  @Test
  void endThatFailsLate_isTheEnd() {
    begin();
    fails(Failure.END_AFTER, stream::endCapture);

    assertThat(stream.isDone()).isTrue();
    checkUsable();
  }

  @Test
  void bodyWhoseCaptureDoesNotEnd_leavesItToTheStream() {
    fails(Failure.END, () -> stream.capture(() -> buffer.fill((byte) 4, stream)).close());

    checkUsable();
  }

  @Test
  void bodyThatFails_whoseCaptureDoesNotEnd_saysBoth_andTheCaptureCanBeEnded() {
    IllegalStateException own = new IllegalStateException("of the body");
    assertThatThrownBy(() ->
            stream.capture(() -> {
              next = Failure.END;
              throw own;
            }))
        .isSameAs(own);

    assertThat(own.getSuppressed())
        .singleElement()
        .asInstanceOf(InstanceOfAssertFactories.THROWABLE)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("goes on in another capture or thread");
    assertThat(stream.isCapturing()).isTrue();
    stream.endCapture().close();
    checkUsable();
  }

  /** The graph that comes of it in the end uses it. */
  @Test
  void memoryOfACapture_whoseEndFails_isItsGraphs() {
    try (MemoryPool pool = new MemoryPool(cuda)) {
      begin();
      pool.allocate(BYTES, stream).close();
      fails(Failure.END, stream::endCapture);
      try (CudaGraph graph = stream.endCapture();
          CudaGraphExec executable = graph.instantiate()) {
        cuda.leaksFound();
        assertThat(pool.stats().pendingBytes() + pool.stats().graphBytes()).isPositive();
        executable.launch(stream);
        stream.synchronize();
      }
    }
  }

  @Test
  void memoryOfACapture_whoseEndFailsLate_comesBack() {
    try (MemoryPool pool = new MemoryPool(cuda)) {
      begin();
      pool.allocate(BYTES, stream).close();
      fails(Failure.END_AFTER, stream::endCapture);

      cuda.leaksFound();
      assertThat(pool.stats().pendingBytes() + pool.stats().graphBytes()).isZero();
      checkUsable();
    }
  }

  /** What it waits for need not be of another capture: nobody knows of which it was. */
  @Test
  void waitOfAStreamWhoseCaptureIsInvalid_isRefusedByTheDriver() {
    try (CudaStream other = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        CudaEvent event = other.record()) {
      begin();
      assertThatThrownBy(() -> cuda.driver().streams().streamQuery(0, stream.handle()))
          .isInstanceOf(CudaException.class);
      assertThatThrownBy(() -> stream.waitFor(event)).isInstanceOf(CudaException.class);
      assertThatThrownBy(stream::endCapture).isInstanceOf(CudaException.class);
      checkUsable();
    }
  }

  /** As every call does that makes something. */
  @Test
  void endOfACapture_endsWhatCouldNotBeEndedBefore() {
    ScriptedDriver driver = new ScriptedDriver();
    try (Cuda own = Cuda.open(CudaOptions.simulated().withDecorator(driver::over));
        CudaStream capturing = own.device(0).createStream(StreamOptions.NON_BLOCKING)) {
      CudaEvent event = own.device(0).createEvent(EventOptions.DEFAULTS);
      capturing.beginCapture(CaptureOptions.DEFAULTS);
      driver.fail("eventDestroy", CudaStatus.UNKNOWN, 1);
      assertThatThrownBy(event::close).isInstanceOf(CudaException.class);
      long before = driver.count("eventDestroy");
      try (CudaGraph _ = capturing.endCapture()) {
        assertThat(driver.count("eventDestroy")).isEqualTo(before + 1);
      }
    }
  }

  /** What the driver says of it is a number alone. */
  @Test
  void endThatTheDriverRefuses_saysWhy() {
    ScriptedDriver driver = new ScriptedDriver();
    try (Cuda own = Cuda.open(CudaOptions.simulated().withDecorator(driver::over));
        CudaStream capturing = own.device(0).createStream(StreamOptions.NON_BLOCKING)) {
      Map<CudaStatus, String> texts =
          Map.of(
              CudaStatus.STREAM_CAPTURE_UNJOINED,
              "its last work is not waited for (expected: waitFor of that stream in this one before"
                  + " the end)",
              CudaStatus.STREAM_CAPTURE_INVALIDATED,
              "a call was made that a capture does not allow",
              CudaStatus.STREAM_CAPTURE_WRONG_THREAD,
              "the capture began in another thread (expected: that thread, or mode RELAXED)",
              CudaStatus.STREAM_CAPTURE_UNMATCHED,
              "");
      capturing.beginCapture(CaptureOptions.DEFAULTS);
      texts.forEach((status, text) -> {
        driver.fail("streamEndCapture", status, 1);
        assertThatThrownBy(capturing::endCapture)
            .isInstanceOfSatisfying(
                CudaException.class, e -> assertThat(e.status()).isEqualTo(status))
            .hasMessageContaining(text);
      });
      capturing.endCapture().close();
    }
  }

  /** The end of the Cuda ended the capture: there is nothing else to be said. */
  @Test
  void bodyThatClosesTheCuda_andFails_failsWithThatAlone() {
    IllegalStateException mine = new IllegalStateException("on purpose");
    Cuda own = Cuda.open(CudaOptions.simulated());
    CudaStream capturing = own.device(0).createStream(StreamOptions.NON_BLOCKING);
    assertThatThrownBy(() ->
            capturing.capture(() -> {
              own.close();
              throw mine;
            }))
        .isSameAs(mine)
        .hasNoSuppressedExceptions();
  }
}

package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.TracingDriver;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What is known of streams without the driver, and of which stream it is. */
@Timeout(60)
class StreamAnswersTest {
  private static final int RELAXED = 2;
  private static final int THREAD_LOCAL = 1;

  private final List<String> calls = new CopyOnWriteArrayList<>();
  private final CountDownLatch go = new CountDownLatch(1);
  private final Cuda cuda =
      Cuda.open(
          CudaOptions.simulated()
              .withDevice("sim:devices=2")
              .withDecorator(driver -> TracingDriver.of(driver, call -> calls.add(call.call()))));
  private final CudaDevice device = cuda.device(0);
  private final CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);
  private final Buffer buffer = cuda.allocate(64, stream);
  private final CudaDriver others = cuda.driver();

  @AfterEach
  void close() {
    go.countDown();
    cuda.close();
  }

  private long count(String call) {
    return calls.stream().filter(each -> each.startsWith(call + "(")).count();
  }

  private long questions() {
    return count("streamIsCapturing") + count("streamGetCaptureInfo");
  }

  /** Work in a stream that nobody else has, whatever became of the captures before. */
  private void checkKnown(String when) {
    stream.synchronize();
    calls.clear();
    buffer.fill((byte) 1, stream);
    assertThat(stream.state.isCapturing()).as(when).isFalse();
    assertThat(stream.state.capture()).as(when).isNull();
    stream.record().close();
    stream.synchronize();
    assertThat(questions()).as(when).isZero();
  }

  /** Such a question costs a call for each copy, fill and launch. */
  @Test
  void captureOfTheLibrary_isKnownWithoutTheDriver_howeverItEnds() {
    checkKnown("before any");
    long[] asked = new long[1];
    Runnable body =
        () -> {
          calls.clear();
          buffer.fill((byte) 2, stream);
          assertThat(stream.state.isCapturing()).isTrue();
          assertThat(stream.state.capture()).isNotNull();
          assertThatThrownBy(stream::synchronize).hasMessageContaining("is capturing a graph");
          asked[0] = questions();
        };
    stream.capture(body::run).close();
    assertThat(asked[0]).as("in the first").isZero();
    checkKnown("after one");
    assertThatThrownBy(() ->
            stream.capture(() -> {
              body.run();
              throw new IllegalStateException("on purpose");
            }))
        .hasMessage("on purpose");
    assertThat(asked[0]).as("in the second").isZero();
    checkKnown("after one that was given up");
    stream.beginCapture(CaptureOptions.DEFAULTS);
    assertThatThrownBy(() -> stream.beginCapture(CaptureOptions.DEFAULTS))
        .hasMessageContaining("already (expected: endCapture before)");
    body.run();
    assertThat(asked[0]).as("in the third").isZero();
    stream.endCapture().close();
    checkKnown("after one that was begun twice");
    assertThatThrownBy(stream::endCapture).hasMessageContaining(stream + " is not capturing");
    checkKnown("after an end without a begin");
  }

  /** It stands for the same stream as the wrappers before, whose handle is its identity then. */
  @Test
  void streamThatIsWrappedInACapture_isTheOneOfItsHandle_amongMany() {
    List<CudaStream> known = new ArrayList<>();
    for (int on = 0; on < 2; on++) {
      for (int i = 0; i < 3; i++) {
        long handle = others.streams().streamCreateWithPriority(on, 1, 0);
        known.add(cuda.device(on).wrapStream(handle, this));
        known.add(cuda.device(on).createStream());
      }
    }
    for (CudaStream each : known) {
      int on = each.device().id();
      others.captures().streamBeginCapture(on, each.handle(), RELAXED);
      try (CudaStream again = each.device().wrapStream(each.handle(), this)) {
        assertThat(again.state).isSameAs(each.state);
        assertThat(again).isEqualTo(each);
      }
      others.graphs().graphDestroy(others.captures().streamEndCapture(on, each.handle()));
    }
  }

  /** Nobody but the thread that began the capture can end it, and with it the stream. */
  @Test
  void streamClosedInACaptureOfAnotherThread_endsOnceOthersHaveEndedThat() throws Exception {
    long handle = stream.handle();
    CountDownLatch begun = new CountDownLatch(1);
    Thread capturing =
        Thread.ofPlatform()
            .start(() -> {
              others.captures().streamBeginCapture(0, handle, THREAD_LOCAL);
              begun.countDown();
              Latches.await(go);
              others.graphs().graphDestroy(others.captures().streamEndCapture(0, handle));
            });
    Latches.await(begun);
    stream.close();
    assertThat(stream.isClosed()).isTrue();
    for (int i = 0; i < 3; i++) {
      long tried = count("streamEndCapture");
      assertThat(cuda.leaksFound()).isZero();
      assertThat(count("streamEndCapture")).as("once each time").isEqualTo(tried + 1);
    }
    assertThat(count("streamDestroy")).as("its capture goes on").isZero();
    go.countDown();
    capturing.join();
    assertThat(cuda.leaksFound()).isZero();
    assertThat(count("streamDestroy")).isOne();
    cuda.close();
    assertThat(count("streamDestroy")).as("once").isOne();
  }

  @Test
  void waitForADevice_isNotForTheWorkOfAnother() {
    CudaStream other = cuda.device(1).createStream(StreamOptions.NON_BLOCKING);
    CudaStream exposed = cuda.device(1).createStream(StreamOptions.NON_BLOCKING);
    for (CudaStream each : List.of(other, exposed)) {
      others.streams().launchHostFunc(1, each.state.handle, () -> Latches.await(go));
    }
    assertThat(exposed.handle()).isNotZero();
    buffer.fill((byte) 3, stream);
    device.synchronize();
    assertThat(stream.isDone()).isTrue();
    assertThat(other.isDone()).isFalse();
    assertThat(go.getCount()).isOne();
    go.countDown();
    cuda.device(1).synchronize();
    assertThat(other.isDone()).isTrue();
    assertThat(exposed.isDone()).isTrue();
  }

  /** The stream that the caller has does not capture anything. */
  @Test
  void nullStreamBesideACapture_isNotSaidToCapture() {
    CudaStream blocking = device.createStream();
    for (CudaStream none : List.of(device.nullStream(), device.legacyStream())) {
      blocking
          .capture(() -> {
            for (Runnable call : List.<Runnable>of(none::synchronize, none::isDone)) {
              assertThatThrownBy(call::run)
                  .isInstanceOf(IllegalStateException.class)
                  .hasMessageContaining(
                      ": a stream that takes turns with the %s is capturing a graph"
                          .formatted(none.state));
            }
          })
          .close();
    }
    blocking
        .capture(() ->
            assertThatThrownBy(blocking::synchronize)
                .hasMessageContaining(": %s is capturing a graph".formatted(blocking.state)))
        .close();
  }
}

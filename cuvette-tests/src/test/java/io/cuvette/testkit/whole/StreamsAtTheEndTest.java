package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.CaptureMode;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.Hold;
import io.cuvette.testkit.ScriptedDriver;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The end of a Cuda with threads in the driver about a stream, whichever kind that is of. */
@Timeout(60)
class StreamsAtTheEndTest {
  private final ScriptedDriver script = new ScriptedDriver();
  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));

  private enum Of {
    CREATED(CudaDevice::createStream),
    GIVEN_OUT(device -> {
      CudaStream stream = device.createStream();
      assertThat(stream.handle()).isNotZero();
      return stream;
    }),
    WRAPPED(device ->
        device.wrapStream(
            device.cuda().driver().streams().streamCreateWithPriority(0, 0, 0), null)),
    PER_THREAD(CudaDevice::perThreadStream),
    NULL(CudaDevice::nullStream),
    LEGACY(CudaDevice::legacyStream);

    private final Function<CudaDevice, CudaStream> maker;

    Of(Function<CudaDevice, CudaStream> maker) {
      this.maker = maker;
    }
  }

  /** Has a thread do something, and the Cuda closed as soon as that is in a call. */
  private void closeInside(String call, Runnable work) throws InterruptedException {
    try (Hold hold = script.hold(call)) {
      Thread inside = Thread.ofPlatform().start(work);
      hold.awaitBegun();
      Thread closing = Thread.ofPlatform().start(cuda::close);
      while (closing.isAlive() && closing.getState() != Thread.State.TIMED_WAITING) {
        Thread.onSpinWait();
      }
      hold.release();
      inside.join();
      closing.join();
    }
    assertThat(cuda.isClosed()).isTrue();
  }

  /** Memory of one byte is had and freed to wait for all streams. */
  @ParameterizedTest
  @EnumSource
  void workThatIsBeingQueued_isWaitedFor(Of kind) throws InterruptedException {
    script.note("memAlloc").note("eventRecord");
    closeInside("eventRecord", () -> kind.maker.apply(cuda.device(0)).record());
    List<String> notes = script.takeNotes();
    assertThat(notes.subList(notes.indexOf("eventRecord"), notes.size())).contains("memAlloc");
  }

  @ParameterizedTest
  @EnumSource
  void threadThatWaits_isOutsideOfTheDriver_onceThatIsClosed(Of kind) throws InterruptedException {
    boolean isAskedByEvents = kind == Of.GIVEN_OUT || kind == Of.WRAPPED;
    String wait = isAskedByEvents ? "eventSynchronize" : "streamSynchronize";
    script.note(wait, "close");
    closeInside(
        wait,
        () -> {
          CudaStream stream = kind.maker.apply(cuda.device(0));
          Buffer buffer = cuda.allocate(512, stream);
          buffer.fill((byte) 1, stream);
          try {
            stream.synchronize();
          } catch (IllegalStateException e) {
            assertThat(e).hasMessageContaining("closed");
          }
        });
    assertThat(script.takeNotes()).contains(wait).endsWith("close");
  }

  /** Whoever closed it left its end to the thread that began the capture, which does not come. */
  @ParameterizedTest
  @EnumSource(names = {"CREATED", "GIVEN_OUT"})
  void streamThatWasClosedInACaptureOfAThreadThatIsGone_endsWithTheCuda(Of kind)
      throws InterruptedException {
    CudaStream stream = kind.maker.apply(cuda.device(0));
    CaptureOptions options = CaptureOptions.DEFAULTS.withMode(CaptureMode.THREAD_LOCAL);
    Thread.ofPlatform().start(() -> stream.beginCapture(options)).join();
    stream.close();
    assertThat(script.count("streamDestroy")).isZero();
    cuda.close();
    assertThat(script.count("streamDestroy")).isOne();
  }

  /** The driver has other ways to wait for all, but they end captures. */
  @Test
  void workOfTheNullStream_isWaitedFor_whereNoMemoryIsFree() {
    CudaStream stream = cuda.device(0).nullStream();
    cuda.allocate(512, stream).fill((byte) 1, stream);
    script.fail("memAlloc", CudaStatus.OUT_OF_MEMORY);
    script.answer("streamQuery", call -> call.number("stream") != 0 && (boolean) call.proceed());
    script.note("eventRecord", call -> "record in " + call.number("stream"));
    script.note("eventSynchronize", "close");
    cuda.close();
    assertThat(script.notes()).containsSubsequence("record in 0", "eventSynchronize", "close");
  }
}

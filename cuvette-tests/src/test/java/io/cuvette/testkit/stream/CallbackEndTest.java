package io.cuvette.testkit.stream;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Latches;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;

/** However a callback ends, or does not: its stream goes on and its future completes. */
class CallbackEndTest {
  private static final int RELAXED = 2;
  private static final long PATIENCE_SECONDS = 30;

  /** So many callbacks are queued at a time, however late the thread is that closes. */
  private static final int MOST_QUEUED = 64;

  @CudaTest
  void callbackWithStatus_runsOnce_withTheStreamsStatus(CudaStream stream) throws Exception {
    List<Object> seen = new ArrayList<>();
    await(
        stream.addCallback(
            (on, status, word) -> {
              seen.add(on);
              seen.add(status);
              seen.add(word);
            },
            "word"));
    assertThat(seen).containsExactly(stream, CudaStatus.SUCCESS, "word");
  }

  @CudaTest(simulatedOnly = true, tidy = false)
  void callbackWithStatus_runsAfterAnErrorOfTheDevice_theOthersDoNot(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    CudaStream breaking = cuda.device(0).createStream();
    CudaStream stream = cuda.device(0).createStream();
    AtomicReference<CudaStatus> status = new AtomicReference<>();
    AtomicInteger others = new AtomicInteger();
    CompletableFuture<Void> failed;
    CompletableFuture<Void> other;
    try (Gate _ = Gate.on(breaking)) {
      int device = stream.device().id();
      cuda.driver()
          .streams()
          .launchHostFunc(
              device,
              breaking.handle(),
              () -> {
                throw new IllegalStateException("breaks the device");
              });
      stream.waitFor(breaking);
      failed = stream.addCallback((_, at, _) -> status.set(at), "");
      other = stream.addCallback(others::incrementAndGet);
    }
    for (CompletableFuture<Void> each : List.of(failed, other)) {
      assertThatThrownBy(() -> await(each))
          .isInstanceOf(ExecutionException.class)
          .hasCauseInstanceOf(CudaException.class);
    }
    assertThat(status.get()).isEqualTo(CudaStatus.LAUNCH_FAILED);
    assertThat(others.get()).isZero();
    assertThatThrownBy(cuda::close).isInstanceOf(CudaException.class);
  }

  @CudaTest
  void callbackThatThrows_whateverItThrows_holdsNothingUp(CudaStream stream) {
    List<Throwable> thrown =
        List.of(new IllegalStateException("mine"), new AssertionError(), new Rude());
    for (Throwable each : thrown) {
      CompletableFuture<Void> failed = stream.addCallback(() -> sneak(each));
      CompletableFuture<Void> next = stream.addCallback(() -> {});
      stream.synchronize();
      assertThat(failed).isCompletedExceptionally();
      assertThat(failed.exceptionNow()).isSameAs(each);
      assertThat(next).isCompleted();
    }
  }

  private static final class Rude extends RuntimeException {
    private static final long serialVersionUID = 1L;

    @Override
    public String toString() {
      throw new IllegalStateException("no text");
    }
  }

  @SuppressWarnings("unchecked")
  private static <T extends Throwable> void sneak(Throwable thrown) throws T {
    throw (T) thrown;
  }

  /** A future is the user's as well. */
  @CudaTest
  void futureThatTheUserCompletes_holdsNothingUp(CudaStream stream) {
    try (Gate gate = Gate.on(stream)) {
      AtomicInteger ran = new AtomicInteger();
      CompletableFuture<Void> done = stream.addCallback(ran::incrementAndGet);
      assertThat(done.cancel(true)).isTrue();
      gate.open();
      stream.synchronize();
      assertThat(ran.get()).isEqualTo(1);
    }
  }

  /** Older devices cannot: then the driver's thread waits. */
  @CudaTest
  void deviceThatCannotWaitAtAFlag_keepsTheOrderAllTheSame(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    driver.fail("streamWaitValue32", CudaStatus.NOT_SUPPORTED);
    try (Buffer buffer = cuda.allocate(64, stream);
        PinnedBuffer host = cuda.allocatePinned(64)) {
      AtomicInteger right = new AtomicInteger();
      for (int i = 0; i < 20; i++) {
        byte value = (byte) i;
        buffer.fill(value, stream);
        host.copyFrom(buffer, stream);
        CompletableFuture<Void> _ =
            stream.addCallback(() -> {
              boolean own = host.segment().get(ValueLayout.JAVA_BYTE, 63) == value;
              cuda.allocate(100).close();
              right.addAndGet(own ? 1 : 0);
            });
      }
      stream.synchronize();
      assertThat(right.get()).isEqualTo(20);
    }
  }

  /** Else each such call would take a word of page-locked memory for good. */
  @CudaTest
  void wordOfACallbackThatFailed_isTheNextOnes(ScriptedDriver driver, CudaStream stream)
      throws Exception {
    Set<Long> words = new HashSet<>();
    driver.answer(
        "streamWaitValue32",
        call -> {
          words.add(call.number("address"));
          throw new CudaException(CudaStatus.OUT_OF_MEMORY, call.name(), "on purpose");
        });
    for (int i = 0; i < 3; i++) {
      assertThatThrownBy(() -> stream.addCallback(() -> {})).isInstanceOf(CudaException.class);
    }
    assertThat(words).hasSize(1);
    driver.unscript("streamWaitValue32");
    await(stream.addCallback(() -> {}));
  }

  @CudaTest
  void waitThatCannotBeQueued_isTheCallsError_andTheCallbackDoesNotRun(
      ScriptedDriver driver, CudaStream stream) throws Exception {
    AtomicInteger waits = new AtomicInteger();
    driver.answer(
        "streamWaitValue32",
        call -> {
          if (waits.getAndIncrement() > 0) {
            throw new CudaException(CudaStatus.OUT_OF_MEMORY, call.name(), "all but the first");
          }
          return call.proceed();
        });
    AtomicInteger ran = new AtomicInteger();
    assertThatThrownBy(() -> stream.addCallback(ran::incrementAndGet))
        .isInstanceOf(CudaException.class);
    stream.synchronize();
    await(stream.onComplete());
    assertThat(ran.get()).isZero();
  }

  /** The wait is a part of the graph then, and holds nothing. */
  @CudaTest(simulatedOnly = true)
  void captureThatBeginsBeforeTheWait_isARefusal_andTheCallbackDoesNotRun(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) throws Exception {
    AtomicInteger ran = new AtomicInteger();
    long handle = stream.handle(); // others may capture it
    driver.answer(
        "streamWaitValue32",
        call -> {
          if (call.number("stream") == handle) {
            call.below().captures().streamBeginCapture(0, handle, RELAXED);
          }
          return call.proceed();
        });
    assertThatThrownBy(() -> stream.addCallback(ran::incrementAndGet))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("addCallback: " + stream + " is capturing a graph");
    CudaDriver below = cuda.driver();
    below.graphs().graphDestroy(below.captures().streamEndCapture(0, handle));
    stream.synchronize();
    assertThat(ran).hasValue(0);
  }

  /** Of these two errors, one is of a capture. */
  @CudaTest(simulatedOnly = true)
  void waitThatOthersStreamCannotTake_isRefusedForACaptureAlone(
      ScriptedDriver driver, @NonBlocking CudaStream stream) {
    long handle = stream.handle();
    AtomicReference<CudaStatus> status = new AtomicReference<>(CudaStatus.OUT_OF_MEMORY);
    driver.answer(
        "streamWaitValue32",
        call -> {
          if (call.number("stream") == handle) {
            throw new CudaException(status.get(), call.name(), "on purpose");
          }
          return call.proceed();
        });
    assertThatThrownBy(() -> stream.addCallback(() -> {}))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("on purpose");
    status.set(CudaStatus.STREAM_CAPTURE_UNSUPPORTED);
    assertThatThrownBy(() -> stream.addCallback(() -> {}))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("addCallback");
  }

  @CudaTest(tidy = false)
  void closingTheCuda_runsWhatIsQueued_andTakesNoMore(Subject subject) throws Exception {
    Cuda cuda = subject.open(options -> options);
    CudaStream stream = cuda.device(0).createStream();
    AtomicInteger ran = new AtomicInteger();
    List<CompletableFuture<Void>> all = new ArrayList<>();
    AtomicReference<Throwable> refused = new AtomicReference<>();
    CountDownLatch closing = new CountDownLatch(1);
    all.add(
        stream.addCallback(() -> {
          Latches.await(closing);
          ran.incrementAndGet();
          refused.set(refusal(stream));
        }));
    for (int i = 0; i < 10; i++) {
      all.add(stream.addCallback(ran::incrementAndGet));
    }
    Thread closer = Thread.ofPlatform().start(cuda::close);
    // Until the closing thread has begun. Each look adds a callback, and they find room for few.
    for (int looks = 0; refusal(stream) == null && looks < MOST_QUEUED; looks++) {
      pause(looks);
    }
    closing.countDown();
    closer.join(TimeUnit.SECONDS.toMillis(PATIENCE_SECONDS));
    assertThat(cuda.isClosed()).isTrue();
    for (CompletableFuture<Void> each : all) {
      await(each);
    }
    assertThat(ran.get()).isEqualTo(11);
    assertThat(refused.get()).isInstanceOf(IllegalStateException.class);
  }

  private static @org.jspecify.annotations.Nullable Throwable refusal(CudaStream stream) {
    try {
      CompletableFuture<Void> _ = stream.onComplete();
      return null;
    } catch (IllegalStateException e) {
      return e;
    }
  }

  @CudaTest(tidy = false, sanitized = false)
  void closingBesideThreadsThatAddCallbacks_losesNone(Subject subject) throws Exception {
    for (int round = 0; round < 30; round++) {
      Cuda cuda = subject.open(options -> options);
      List<CompletableFuture<Void>> all = new ArrayList<>();
      AtomicInteger ran = new AtomicInteger();
      CountDownLatch started = new CountDownLatch(1);
      Semaphore room = new Semaphore(MOST_QUEUED);
      Thread adding =
          Thread.ofPlatform()
              .start(() -> {
                CudaStream stream = cuda.device(0).createStream();
                try {
                  while (true) {
                    room.acquireUninterruptibly();
                    all.add(
                        stream.addCallback(() -> {
                          ran.incrementAndGet();
                          room.release();
                          cuda.allocate(64).close();
                        }));
                    started.countDown();
                  }
                } catch (IllegalStateException e) {
                  // closed
                }
              });
      Latches.await(started);
      cuda.close();
      adding.join(TimeUnit.SECONDS.toMillis(PATIENCE_SECONDS));
      for (CompletableFuture<Void> each : all) {
        await(each);
      }
      assertThat(ran.get()).isEqualTo(all.size());
    }
  }

  private static void pause(int looks) {
    LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(Math.min(1L << (looks / 2), 1_000)));
  }

  private static void await(CompletableFuture<Void> future) throws Exception {
    future.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
  }
}

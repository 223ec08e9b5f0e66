package io.cuvette.testkit.stream;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.PinnedBuffer;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.AtOnce;
import io.cuvette.testkit.support.Latches;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Timeout;

/** A callback holds its stream: the work before it is done, and the work after it waits. */
class CallbackOrderTest {
  private static final int ROUNDS = 100;
  private static final int THREADS = 4;
  private static final int RELAXED = 2;
  private static final long BYTES = 1 << 16;
  private static final long PATIENCE_SECONDS = 30;

  @CudaTest(seeds = 3)
  void callback_seesTheDataOfItsOwnStep_notTheNextOnes(Cuda cuda, @NonBlocking CudaStream stream) {
    AtomicInteger wrong = new AtomicInteger();
    AtomicInteger seen = new AtomicInteger();
    try (Buffer buffer = cuda.allocate(BYTES, stream);
        PinnedBuffer host = cuda.allocatePinned(BYTES)) {
      for (int i = 0; i < ROUNDS; i++) {
        byte value = (byte) i;
        buffer.fill(value, stream);
        host.copyFrom(buffer, stream);
        CompletableFuture<Void> _ =
            stream.addCallback(() -> {
              Thread.yield();
              for (long at = 0; at < BYTES; at += BYTES / 16) {
                if (host.segment().get(ValueLayout.JAVA_BYTE, at) != value) {
                  wrong.incrementAndGet();
                }
              }
              seen.incrementAndGet();
            });
      }
      stream.synchronize();
      assertThat(seen.get()).as("callbacks that returned before synchronize").isEqualTo(ROUNDS);
      assertThat(wrong.get()).as("bytes of another step").isZero();
    }
  }

  @CudaTest
  @Timeout(300)
  void callbacksThatThreadsAddAtOnce_runOneAfterTheOther(Cuda cuda) throws Exception {
    AtomicInteger running = new AtomicInteger();
    AtomicInteger ran = new AtomicInteger();
    AtomicInteger together = new AtomicInteger();
    Runnable callback =
        () -> {
          together.addAndGet(running.getAndIncrement());
          for (int i = 0; i < ROUNDS; i++) {
            Thread.onSpinWait();
          }
          running.getAndDecrement();
          ran.getAndIncrement();
        };
    for (boolean exposed : new boolean[] {false, true}) {
      try (CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING)) {
        assertThat(exposed && stream.handle() == 0).isFalse();
        new AtOnce()
            .run(
                THREADS,
                _ -> {
                  for (int i = 0; i < 4 * ROUNDS; i++) {
                    stream.addCallback(callback);
                  }
                });
        stream.synchronize();
      }
    }
    assertThat(ran).hasValue(2 * THREADS * 4 * ROUNDS);
    assertThat(together).hasValue(0);
  }

  @CudaTest
  void whatTheCallbackWrites_isWhatTheNextCopyTakes(Cuda cuda, CudaStream stream) {
    try (Buffer buffer = cuda.allocate(BYTES, stream);
        PinnedBuffer host = cuda.allocatePinned(BYTES)) {
      for (int i = 0; i < ROUNDS; i++) {
        byte value = (byte) i;
        CompletableFuture<Void> _ = stream.addCallback(() -> host.segment().fill(value));
        buffer.copyFrom(host, stream);
        host.copyFrom(buffer, stream);
      }
      stream.synchronize();
      assertThat(host.segment().get(ValueLayout.JAVA_BYTE, BYTES - 1))
          .isEqualTo((byte) (ROUNDS - 1));
    }
  }

  @CudaTest
  void streamEventsAndOtherStreams_seeARunningCallbackAsWork(
      @NonBlocking CudaStream stream, @NonBlocking CudaStream other) throws Exception {
    CountDownLatch started = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    AtomicBoolean over = new AtomicBoolean();
    CompletableFuture<Void> done =
        stream.addCallback(() -> {
          started.countDown();
          Latches.await(go);
          over.set(true);
        });
    try (CudaEvent event = stream.record()) {
      other.waitFor(event);
      Latches.await(started);
      assertThat(stream.isDone()).isFalse();
      assertThat(event.isDone()).isFalse();
      assertThat(other.isDone()).isFalse();
      assertThat(done).isNotDone();
      go.countDown();
      other.synchronize();
      assertThat(over).isTrue();
      assertThat(done).isDone();
      stream.synchronize();
      assertThat(event.isDone()).isTrue();
    }
  }

  /** Whoever waits for the stream finds the future done, and what depends on it may wait too. */
  @CudaTest
  void futures_areDoneBeforeTheStreamGoesOn_andWhatDependsOnThemMayWaitForIt(CudaStream stream)
      throws Exception {
    List<CompletableFuture<Void>> dependent = new ArrayList<>();
    for (int i = 0; i < ROUNDS; i++) {
      CompletableFuture<Void> done = stream.addCallback(() -> {});
      dependent.add(done.thenRun(stream::synchronize));
      CompletableFuture<Void> next = stream.addCallback(() -> {});
      stream.synchronize();
      assertThat(done).isDone();
      assertThat(next).isDone();
    }
    for (CompletableFuture<Void> each : dependent) {
      each.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    }
  }

  @CudaTest
  void thousandsOfCallbacksBehindOne_runInOrder(Cuda cuda) throws Exception {
    int count = 3_000;
    CountDownLatch go = new CountDownLatch(1);
    List<Integer> seen = new ArrayList<>(); // by one callback at a time
    try (CudaStream stream = cuda.device(0).createStream()) {
      CompletableFuture<Void> _ = stream.addCallback(() -> Latches.await(go));
      Thread opening = Thread.ofPlatform().start(go::countDown);
      for (int i = 0; i < count; i++) {
        int number = i;
        CompletableFuture<Void> _ = stream.addCallback(() -> seen.add(number));
      }
      opening.join();
      stream.synchronize();
    }
    assertThat(seen).hasSize(count).isSorted();
  }

  @CudaTest(sanitized = false)
  void manyStreamsAndVirtualThreads_eachSeeTheirOwnSteps(Cuda cuda) throws Exception {
    int threads = 64;
    AtomicInteger wrong = new AtomicInteger();
    List<Thread> all = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      all.add(Thread.ofVirtual().start(() -> steps(cuda, wrong)));
    }
    for (Thread thread : all) {
      assertThat(thread.join(java.time.Duration.ofSeconds(PATIENCE_SECONDS))).isTrue();
    }
    assertThat(wrong.get()).isZero();
  }

  private static void steps(Cuda cuda, AtomicInteger wrong) {
    try (CudaStream stream = cuda.device(0).createStream();
        Buffer buffer = cuda.allocate(64, stream);
        PinnedBuffer host = cuda.allocatePinned(64)) {
      AtomicInteger last = new AtomicInteger();
      for (int i = 0; i < 10; i++) {
        byte value = (byte) (i + 1);
        buffer.fill(value, stream);
        host.copyFrom(buffer, stream);
        CompletableFuture<Void> _ =
            stream.addCallback(() -> last.set(host.segment().get(ValueLayout.JAVA_BYTE, 63)));
        stream.synchronize();
        if (last.get() != value) {
          wrong.incrementAndGet();
        }
      }
    }
  }

  /** Queued beside the stream, it would run before the work that it is to come after. */
  @CudaTest(simulatedOnly = true)
  void callbackWhoseStreamCannotBeMarked_becauseOfACapture_isRefused(
      ScriptedDriver driver, @NonBlocking CudaStream stream) {
    long _ = stream.handle(); // others may capture it
    AtomicInteger ran = new AtomicInteger();
    driver.fail("eventRecord", CudaStatus.STREAM_CAPTURE_UNSUPPORTED, 1);
    assertThatThrownBy(() -> stream.addCallback(ran::incrementAndGet))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("addCallback")
        .hasMessageContaining("is capturing a graph");
    assertThat(ran).hasValue(0);
    stream.addCallback(ran::incrementAndGet).join();
    assertThat(ran).hasValue(1);
  }

  /** Where others may capture the stream it is begun beside it, which takes more calls. */
  @CudaTest(simulatedOnly = true)
  void callback_isQueuedInItsStreamAlone_ifNobodyElseCanCaptureThat(
      ScriptedDriver driver, @NonBlocking CudaStream stream) {
    stream.addCallback(() -> {}).join(); // it is known from now on how streams can wait
    driver.note("eventRecord", "streamWaitEvent", "launchHostFunc", "streamWaitValue32");
    stream.addCallback(() -> {}).join();
    assertThat(driver.takeNotes()).containsExactly("launchHostFunc", "streamWaitValue32");
    stream.onComplete().join();
    assertThat(driver.takeNotes()).containsExactly("launchHostFunc");
  }

  /** It is queued, and nothing that it does is part of the graph. */
  @CudaTest(simulatedOnly = true)
  void futureOfAStreamThatOthersBeginToCapture_isStillOneOfTheWorkBefore(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    long handle = stream.handle(); // others may capture it
    stream.onComplete().join();
    driver.answer(
        "launchHostFunc",
        call -> {
          Object given = call.proceed();
          call.below().captures().streamBeginCapture(0, handle, RELAXED);
          return given;
        });
    CompletableFuture<Void> complete = stream.onComplete();
    driver.unscript("launchHostFunc");
    complete.join();
    cuda.driver().graphs().graphDestroy(cuda.driver().captures().streamEndCapture(0, handle));
  }
}

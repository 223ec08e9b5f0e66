package io.cuvette.testkit.stream;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Latches;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;

class CallbackTest {
  private static final long PATIENCE_SECONDS = 30;

  @CudaTest
  void hundredCallbacks_runInOrder_withTheirStreamAndArgument(Cuda cuda) throws Exception {
    List<Integer> seen = Collections.synchronizedList(new ArrayList<>());
    try (CudaStream stream = cuda.device(0).createStream()) {
      CompletableFuture<Void> last = CompletableFuture.completedFuture(null);
      for (int i = 0; i < 100; i++) {
        last =
            stream.addCallback(
                (CudaStream of, Integer argument) -> {
                  assertThat(of).isEqualTo(stream);
                  seen.add(argument);
                },
                i);
      }
      await(last);
    }
    assertThat(seen).isEqualTo(IntStream.range(0, 100).boxed().toList());
  }

  /** Who adds it makes the thread here, which would live on with what it had inherited. */
  @CudaTest(simulatedOnly = true)
  void callback_inheritsNothingFromWhoAddsIt(ScriptedDriver driver, CudaStream stream)
      throws Exception {
    driver.answer(
        "launchHostFunc",
        call -> {
          call.argument("function", Runnable.class).run();
          return null;
        });
    InheritableThreadLocal<Integer> local = new InheritableThreadLocal<>();
    List<Object> seen = Collections.synchronizedList(new ArrayList<>());
    local.set(1);
    try {
      await(stream.addCallback(() -> seen.add(Objects.requireNonNullElse(local.get(), "nothing"))));
    } finally {
      local.remove();
    }
    assertThat(seen).containsExactly("nothing");
  }

  @CudaTest
  void callback_runsAfterTheWorkBeforeIt_notEarlier(Cuda cuda, CudaStream stream) throws Exception {
    try (Buffer buffer = cuda.allocate(64, stream)) {
      Gate gate = Gate.on(stream);
      buffer.fill((byte) 4, stream);
      CompletableFuture<Void> done = stream.onComplete();
      assertThat(done).isNotDone();
      gate.open();
      await(done);
      stream.synchronize(); // the future is done a moment before the driver knows
      assertThat(stream.isDone()).isTrue();
    }
  }

  @CudaTest
  void callback_mayCallCuda_andMayBlock(Cuda cuda) throws Exception {
    AtomicReference<byte[]> content = new AtomicReference<>();
    CountDownLatch latch = new CountDownLatch(1);
    try (CudaStream stream = cuda.device(0).createStream();
        Buffer buffer = cuda.allocate(64, stream)) {
      buffer.fill((byte) 6, stream);
      CompletableFuture<Void> done =
          stream.addCallback(() -> {
            Latches.await(latch);
            content.set(Bytes.of(buffer));
            try (Buffer more = cuda.allocate(128)) {
              more.fill((byte) 1);
            }
          });
      latch.countDown();
      stream.synchronize();
      assertThat(done).isDone();
      await(done);
    }
    assertThat(content.get()).containsOnly(6);
  }

  @CudaTest
  void callbackOfOneStream_doesNotHoldAnothersBack(CudaStream slow, CudaStream quick)
      throws Exception {
    CountDownLatch latch = new CountDownLatch(1);
    CompletableFuture<Void> blocked = slow.addCallback(() -> Latches.await(latch));
    await(quick.onComplete());
    assertThat(blocked).isNotDone();
    latch.countDown();
    await(blocked);
  }

  @CudaTest
  void callback_runsOnAThreadOfTheLibrary(Cuda cuda) throws Exception {
    AtomicReference<Thread> thread = new AtomicReference<>();
    await(cuda.currentStream().addCallback(() -> thread.set(Thread.currentThread())));
    assertThat(thread.get()).isNotEqualTo(Thread.currentThread());
    assertThat(thread.get().isDaemon()).isTrue();
  }

  @CudaTest
  void exceptionOfACallback_isDelivered_andTheNextOnesRun(CudaStream stream) throws Exception {
    RuntimeException mine = new UnsupportedOperationException("mine");
    CompletableFuture<Void> failed =
        stream.addCallback(() -> {
          throw mine;
        });
    Error error = new AssertionError("also mine");
    CompletableFuture<Void> failedToo =
        stream.addCallback(() -> {
          throw error;
        });
    await(stream.onComplete());
    assertThatThrownBy(() -> await(failed)).hasCause(mine);
    assertThatThrownBy(() -> await(failedToo)).hasCause(error);
    stream.synchronize();
  }

  @CudaTest
  void callbackAddedInACallback_runs(CudaStream stream) throws Exception {
    CompletableFuture<CompletableFuture<Void>> inner = new CompletableFuture<>();
    await(stream.addCallback(() -> inner.complete(stream.onComplete())));
    await(inner.get(PATIENCE_SECONDS, TimeUnit.SECONDS));
  }

  @CudaTest
  void callbacksOfTheNullStream_work(Cuda cuda) throws Exception {
    await(cuda.device(0).nullStream().onComplete());
    await(cuda.device(0).legacyStream().onComplete());
    await(cuda.device(0).perThreadStream().onComplete());
  }

  /** The driver calls nobody back after a device error; the library finds out by itself. */
  @CudaTest(simulatedOnly = true, tidy = false)
  void deviceError_failsThePendingFutures(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    CudaStream breaking = cuda.device(0).createStream();
    CudaStream stream = cuda.device(0).createStream();
    CompletableFuture<Void> pending;
    try (Gate _ = Gate.on(breaking)) {
      breakDevice(breaking);
      pending = stream.onComplete();
    }
    assertThatThrownBy(() -> await(pending))
        .isInstanceOf(ExecutionException.class)
        .hasCauseInstanceOf(CudaException.class)
        .hasMessageContaining("LAUNCH_FAILED");
    assertThatThrownBy(cuda::close).isInstanceOf(CudaException.class);
  }

  @CudaTest(simulatedOnly = true, tidy = false)
  void afterADeviceError_theOperationIsNamed_alsoIfSomebodyElsesDriverStandsBetween(
      Cuda cuda, ScriptedDriver driver) {
    CudaStream stream = cuda.device(0).createStream();
    breakDevice(stream);
    assertThatThrownBy(stream::synchronize)
        .isInstanceOf(CudaException.class)
        .hasMessageEndingWith("in CudaStream.synchronize");
    assertThatThrownBy(cuda::close).isInstanceOf(CudaException.class);
  }

  /** What was asked for fails, in words about that, and about what failed first. */
  @CudaTest(simulatedOnly = true, tidy = false)
  void afterADeviceError_messagesNameTheOperationAndTheFirstFailure(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    CudaStream stream = cuda.device(0).createStream();
    Buffer buffer = cuda.allocate(1000, stream);
    breakDevice(stream);
    assertThatThrownBy(stream::synchronize)
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("LAUNCH_FAILED")
        .hasMessageEndingWith("in CudaStream.synchronize");
    String first = "the first call that failed was cu"; // whichever came to it first
    assertThatThrownBy(() -> buffer.fill((byte) 1, stream))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("in fill; " + first);
    assertThatThrownBy(() -> cuda.device(0).memoryInfo())
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("in CudaDevice.memoryInfo; " + first);

    AtomicReference<CudaStatus> status = new AtomicReference<>();
    for (CompletableFuture<Void> each :
        List.of(
            stream.onComplete(),
            stream.addCallback(() -> status.set(CudaStatus.UNKNOWN)),
            stream.addCallback((_, at, _) -> status.set(at), ""))) {
      assertThatThrownBy(() -> await(each))
          .isInstanceOf(ExecutionException.class)
          .cause()
          .isInstanceOf(CudaException.class)
          .hasMessageStartingWith("cuLaunchHostFunc(stream=")
          .hasMessageContaining(first);
    }
    assertThat(status.get()).isEqualTo(CudaStatus.LAUNCH_FAILED);
    assertThatThrownBy(cuda::close).isInstanceOf(CudaException.class);
  }

  @CudaTest(simulatedOnly = true, tidy = false)
  void errorOfAStream_isThrown_notReadAsNotYet(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    CudaStream stream = cuda.device(0).createStream();
    var event = stream.record();
    breakDevice(stream);
    assertThatThrownBy(stream::synchronize).isInstanceOf(CudaException.class);
    for (Runnable ask :
        new Runnable[] {
          stream::isDone,
          stream::synchronize,
          event::isDone,
          event::synchronize,
          cuda.device(0)::synchronize
        }) {
      assertThatThrownBy(ask::run)
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("LAUNCH_FAILED");
    }
    assertThatThrownBy(cuda::close).isInstanceOf(CudaException.class);
  }

  /** A host function that throws breaks the simulated device; the library never lets one. */
  private static void breakDevice(CudaStream stream) {
    stream
        .device()
        .cuda()
        .driver()
        .streams()
        .launchHostFunc(
            stream.device().id(),
            stream.handle(),
            () -> {
              throw new IllegalStateException("breaks the device");
            });
  }

  @CudaTest(tidy = false)
  void pendingCallbacks_failWhenTheCudaIsClosed(Subject subject) throws Exception {
    Cuda cuda = subject.open(options -> options);
    CudaStream stream = cuda.device(0).createStream();
    await(stream.onComplete());
    CompletableFuture<Void> last = stream.addCallback(() -> {});
    cuda.close();
    assertThat(last.handle((nothing, failure) -> true).get(PATIENCE_SECONDS, TimeUnit.SECONDS))
        .isTrue();
    assertThatThrownBy(stream::onComplete).isInstanceOf(IllegalStateException.class);
  }

  private static void await(CompletableFuture<Void> future) throws Exception {
    future.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
  }
}

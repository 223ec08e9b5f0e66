package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.DriverProxy;
import io.cuvette.internal.callback.Callback;
import io.cuvette.internal.callback.CallbackThreads;
import io.cuvette.internal.session.DeferredFrees;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a callback's thread, its future and its word are to those that come after it. */
@Timeout(60)
class CallbackRulesTest {
  private static final int ROUNDS = 200;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final CallbackThreads threads = new CallbackThreads(cuda.engine().session());
  private final CudaException failure =
      new CudaException(CudaStatus.LAUNCH_FAILED, "cuLaunchHostFunc", "the test's");

  @AfterEach
  void close() {
    threads.shutdown();
    cuda.close();
  }

  private CompletableFuture<Void> run(
      Consumer<CudaStatus> body, boolean always, @Nullable RuntimeException failed) {
    Callback callback = new Callback(stream.state, body, always);
    List<String> returned = new ArrayList<>();
    assertThat(callback.begin()).isTrue();
    threads.run(callback, failed, () -> returned.add("returned"));
    assertThat(returned).hasSize(1);
    assertThat(callback.isReleased()).isTrue();
    return callback.done;
  }

  private static void refuse(CudaStatus status) {
    throw new IllegalArgumentException("of the callback after " + status);
  }

  /** What the callback throws after that is added to it. */
  @Test
  void futureOfACallbackWhoseStreamFailed_endsWithThatFailure() {
    List<CudaStatus> seen = new ArrayList<>();
    assertThatThrownBy(run(seen::add, false, failure)::join).hasCause(failure);
    assertThat(seen).as("it is not run").isEmpty();
    assertThatThrownBy(run(seen::add, true, failure)::join).hasCause(failure);
    assertThat(seen).containsExactly(CudaStatus.LAUNCH_FAILED);
    assertThat(failure).hasNoSuppressedExceptions();
    assertThatThrownBy(run(CallbackRulesTest::refuse, true, failure)::join).hasCause(failure);
    assertThat(failure.getSuppressed())
        .singleElement()
        .hasToString(
            "java.lang.IllegalArgumentException: of the callback after "
                + CudaStatus.LAUNCH_FAILED);
  }

  @Test
  void futureOfACallback_endsWithWhatItThrew() {
    assertThat(run(_ -> {}, false, null)).isCompleted();
    assertThatThrownBy(run(CallbackRulesTest::refuse, false, null)::join)
        .isInstanceOf(CompletionException.class)
        .hasCauseInstanceOf(IllegalArgumentException.class);
    Consumer<CudaStatus> rethrow =
        _ -> {
          throw failure;
        };
    assertThatThrownBy(run(rethrow, true, failure)::join).hasCause(failure);
    assertThat(failure).hasNoSuppressedExceptions();
  }

  /** Its stream goes on when it has returned, and that of another device may wait for it. */
  @Test
  void waitForADevice_isRefusedInside() {
    assertThatThrownBy(run(_ -> cuda.device(0).synchronize(), false, null)::join)
        .hasCauseInstanceOf(IllegalStateException.class)
        .hasMessageContaining("synchronize() of device 0")
        .hasMessageContaining("would wait for the callback itself");
    cuda.device(0).synchronize();
  }

  /** The work is done as far as the driver knows, and it does not come again. */
  @Test
  void futureThatTheDriverNeverComesTo_endsWithTheCuda() {
    CompletableFuture<Void> never;
    try (Cuda deaf =
        Cuda.open(
            CudaOptions.simulated()
                .withDecorator(driver ->
                    DriverProxy.of((method, arguments) ->
                        method.getName().equals("launchHostFunc")
                            ? null
                            : DriverProxy.forward(driver, method, arguments))))) {
      never = deaf.device(0).createStream(StreamOptions.NON_BLOCKING).onComplete();
      deaf.device(0).synchronize();
      assertThat(never).isNotDone();
    }
    assertThatThrownBy(never::join)
        .hasCauseInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed before the stream reached");
  }

  /** The thread runs what depends on other futures next. */
  @Test
  void whatADependentMadeCurrent_isCurrentForNoneAfterIt() {
    List<Thread> ran = new CopyOnWriteArrayList<>();
    List<CudaStream> current = new CopyOnWriteArrayList<>();
    for (int i = 0; i < ROUNDS && ran.stream().distinct().count() == ran.size(); i++) {
      int count = i + 1;
      Callback callback = new Callback(stream.state, _ -> {}, false);
      assertThat(callback.begin()).isTrue();
      CompletableFuture<Void> after =
          callback.done.thenRun(() -> {
            current.add(cuda.currentStream());
            Scope _ = stream.use();
            ran.add(Thread.currentThread());
          });
      threads.run(callback, null, () -> {});
      after.orTimeout(40, TimeUnit.SECONDS).join();
      assertThat(ran).hasSize(count);
    }
    assertThat(current).hasSizeGreaterThan(1).doesNotContain(stream);
  }

  /** A free that waits for the device waited for a callback, and there was no gap so far. */
  @Test
  void allocationOfTheDriverThatIsShort_hasWhatCallbacksPutOff() {
    try (Cuda small = Cuda.open(CudaOptions.simulated().withDevice("sim:memory=40MiB"))) {
      CallbackThreads ofSmall = new CallbackThreads(small.engine().session());
      DeferredFrees frees = small.engine().session().frees();
      CudaStream home = small.device(0).createStream(StreamOptions.NON_BLOCKING);
      long all = small.device(0).memoryInfo().freeBytes();
      Buffer first = MemoryResource.direct().allocate(all, home);
      Callback callback = new Callback(home.state, _ -> first.close(), false);
      assertThat(callback.begin()).isTrue();
      frees.beginHold();
      ofSmall.run(callback, null, () -> {});
      frees.endHold();
      assertThat(callback.done).isCompleted();
      assertThat(frees.isAnyLeft()).isTrue();
      MemoryResource.direct().allocate(all, home).close();
      assertThat(frees.isAnyLeft()).isFalse();
      ofSmall.shutdown();
    }
  }

  /** The word that it was tried with is the next callback's. */
  @Test
  void deviceThatCannotWaitAtAWord_keepsNone() throws Exception {
    List<Object> words = new CopyOnWriteArrayList<>();
    CudaOptions two = CudaOptions.simulated().withDevice("sim:devices=2");
    try (Cuda watched =
        Cuda.open(
            two.withDecorator(driver ->
                DriverProxy.of((method, arguments) -> {
                  if (method.getName().equals("streamWaitValue32")) {
                    words.add(arguments[2]);
                    if (words.size() == 1 || arguments[0].equals(0)) {
                      CudaStatus status =
                          words.size() == 1 ? CudaStatus.NOT_PERMITTED : CudaStatus.NOT_SUPPORTED;
                      throw new CudaException(status, "cuStreamWaitValue32", "the test's");
                    }
                  }
                  return DriverProxy.forward(driver, method, arguments);
                })))) {
      assertThatThrownBy(() -> watched.device(0).nullStream().addCallback(() -> {}))
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.NOT_PERMITTED));
      for (int device : new int[] {0, 0, 1}) {
        try (CudaStream each = watched.device(device).createStream(StreamOptions.NON_BLOCKING)) {
          each.addCallback(() -> {}).get(40, TimeUnit.SECONDS);
          each.synchronize();
        }
      }
      assertThat(words.stream().distinct()).hasSize(1);
      assertThat(words).as("a failure, a try on each device, and a callback").hasSize(4);
    }
  }

  /** No thread is left for it: what depends on it runs here, and may wait for the stream. */
  @Test
  void futureThatCompletesOnceTheThreadsHaveEnded_findsTheStreamGoingOn() {
    List<Boolean> released = new ArrayList<>();
    for (@Nullable RuntimeException failed : Arrays.asList(null, failure)) {
      threads.shutdown();
      Callback callback = new Callback(stream.state, _ -> {}, false);
      assertThat(callback.begin()).isTrue();
      CompletableFuture<Void> after =
          callback.done.whenComplete((_, _) -> released.add(callback.isReleased()));
      assertThat(callback.isReleased()).isFalse();
      threads.run(callback, failed, () -> {});
      assertThat(after.isDone()).isTrue();
      assertThat(after.isCompletedExceptionally()).isEqualTo(failed != null);
    }
    assertThat(released).containsExactly(true, true);
  }
}

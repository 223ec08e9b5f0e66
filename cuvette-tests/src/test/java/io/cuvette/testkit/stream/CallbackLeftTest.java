package io.cuvette.testkit.stream;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.driver.CudaException;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** What is left of callbacks when their Cuda ends: nothing, and nobody waits for one in vain. */
class CallbackLeftTest {
  private static final long PATIENCE_SECONDS = 30;

  /** The Cuda waits for what it fails itself: the callback still runs inside of it. */
  @CudaTest(simulatedOnly = true, tidy = false)
  void callbackThatALostDeviceNeverReaches_endsBeforeItsCuda(Subject subject) throws Exception {
    Cuda cuda = subject.open(options -> options);
    CudaStream stream = cuda.device(0).createStream();
    cuda.driver()
        .streams()
        .launchHostFunc(
            0,
            stream.handle(),
            () -> {
              throw new IllegalStateException("breaks the device");
            });
    AtomicReference<@Nullable Throwable> thrown = new AtomicReference<>();
    Thread closer =
        Thread.ofPlatform()
            .uncaughtExceptionHandler((_, e) -> thrown.set(e))
            .unstarted(cuda::close);
    AtomicReference<@Nullable Boolean> waited = new AtomicReference<>();
    CompletableFuture<Void> left =
        stream.addCallback((_, _, _) -> waited.set(isWaitingIn(closer)), "");
    closer.start();
    assertThatThrownBy(() -> left.get(PATIENCE_SECONDS, TimeUnit.SECONDS))
        .hasCauseInstanceOf(RuntimeException.class);
    assertThat(closer.join(Duration.ofSeconds(PATIENCE_SECONDS))).isTrue();
    assertThat(thrown.get()).isInstanceOf(CudaException.class);
    assertThat(waited.get()).isTrue();
  }

  /** Whether a thread waits for somebody before it ends. */
  private static boolean isWaitingIn(Thread thread) {
    Thread.State state = thread.getState();
    while (state != Thread.State.TIMED_WAITING && state != Thread.State.TERMINATED) {
      Thread.onSpinWait();
      state = thread.getState();
    }
    return state == Thread.State.TIMED_WAITING;
  }

  @CudaTest(tidy = false)
  void threadThatWatchesCallbacks_endsWithTheirCuda(Subject subject) throws Exception {
    Set<Thread> before = watchers();
    Cuda cuda = subject.open(options -> options);
    cuda.device(0).createStream().addCallback(() -> {}).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    Set<Thread> own = watchers();
    own.removeAll(before);
    assertThat(own).hasSize(1).allMatch(Thread::isDaemon);
    cuda.close();
    for (Thread each : own) {
      assertThat(each.join(Duration.ofSeconds(PATIENCE_SECONDS))).isTrue();
    }
  }

  private static Set<Thread> watchers() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals("cuvette-callback-watcher"))
        .collect(Collectors.toSet());
  }
}

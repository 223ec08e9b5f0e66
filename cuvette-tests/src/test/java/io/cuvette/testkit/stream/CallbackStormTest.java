package io.cuvette.testkit.stream;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.StreamOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Latches;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Timeout;

/** Callbacks of streams that come and go, on many threads, and beside whatever waits for them. */
@Timeout(60)
class CallbackStormTest {
  private static final long PATIENCE_SECONDS = 30;

  @CudaTest
  void streamsThatAreClosedAtOnce_runEveryCallbackOnce_inOrder(Cuda cuda) throws Exception {
    int threads = 8;
    int rounds = 100;
    AtomicInteger ran = new AtomicInteger();
    AtomicInteger wrong = new AtomicInteger();
    ConcurrentLinkedQueue<CompletableFuture<Void>> all = new ConcurrentLinkedQueue<>();
    onThreads(
        threads,
        () -> {
          for (int i = 0; i < rounds; i++) {
            try (CudaStream stream = cuda.device(0).createStream();
                Buffer buffer = cuda.allocate(64, stream)) {
              AtomicInteger before = new AtomicInteger();
              for (int step = 0; step < 3; step++) {
                int number = step;
                buffer.fill((byte) step, stream);
                all.add(
                    stream.addCallback(() -> {
                      ran.incrementAndGet();
                      wrong.addAndGet(before.getAndIncrement() == number ? 0 : 1);
                      cuda.allocate(64).close();
                    }));
              }
            }
          }
        });
    for (CompletableFuture<Void> each : all) {
      await(each);
    }
    assertThat(ran.get()).isEqualTo(threads * rounds * 3);
    assertThat(wrong.get()).isZero();
    cuda.device(0).synchronize();
  }

  /**
   * The driver gets plain memory back when the callback is over, from whoever closes it or, if the
   * callback takes long, later; what the callback calls does not wait for that.
   */
  @CudaTest
  void plainMemoryFreedBesideACallback_waitsForIt_andDoesNotHoldItsCallsUp(
      Cuda cuda, ScriptedDriver driver) throws Exception {
    AtomicInteger early = new AtomicInteger();
    for (int round = 0; round < 20; round++) {
      Buffer direct = MemoryResource.direct().allocate(1 << 20, cuda.device(0).nullStream());
      PinnedBuffer pinned = cuda.directPinned().allocate(1 << 16);
      CountDownLatch started = new CountDownLatch(1);
      CountDownLatch freeing = new CountDownLatch(2);
      AtomicBoolean over = new AtomicBoolean();
      Set<Long> both = Set.of(direct.address(), pinned.address());
      for (String free : List.of("memFree", "memFreeHost")) {
        driver.answer(
            free,
            call -> {
              early.addAndGet(!over.get() && both.contains(call.number("address")) ? 1 : 0);
              return call.proceed();
            });
      }
      List<CompletableFuture<Void>> closers = new ArrayList<>();
      try (CudaStream stream = cuda.device(0).createStream();
          Buffer buffer = cuda.allocate(1 << 16, stream)) {
        buffer.fill((byte) 1, stream);
        CompletableFuture<Void> done =
            stream.addCallback(() -> {
              started.countDown();
              Latches.await(freeing);
              try (PinnedBuffer host = cuda.directPinned().allocate(1 << 16);
                  CudaStream other = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
                  Buffer more = MemoryResource.direct().allocate(1 << 16, other)) {
                more.fill((byte) 1, other);
                host.copyFrom(more, other);
                other.synchronize();
                buffer.copyTo(host);
              }
              over.set(true);
            });
        Latches.await(started);
        for (AutoCloseable closed : List.of(direct, pinned)) {
          closers.add(
              CompletableFuture.runAsync(
                  () -> {
                    freeing.countDown();
                    close(closed);
                  },
                  task -> Thread.ofPlatform().start(task)));
        }
        cuda.device(0).synchronize();
        assertThat(over.get()).isTrue();
        await(done);
        for (CompletableFuture<Void> closer : closers) {
          await(closer);
        }
      }
      assertThat(early).as("freed beside the callback").hasValue(0);
    }
  }

  @CudaTest
  void streamsThatExistFromTheStart_areHeld(Cuda cuda) throws Exception {
    for (CudaStream stream :
        List.of(
            cuda.device(0).nullStream(),
            cuda.device(0).legacyStream(),
            cuda.device(0).perThreadStream())) {
      CountDownLatch go = new CountDownLatch(1);
      CompletableFuture<Void> done = stream.addCallback(() -> Latches.await(go));
      assertThat(stream.isDone()).as("%s", stream).isFalse();
      go.countDown();
      stream.synchronize();
      assertThat(done).isDone();
    }
    CudaStream own = cuda.device(0).perThreadStream();
    CompletableFuture<Void> elsewhere = own.addCallback(own::synchronize);
    assertThatThrownBy(() -> await(elsewhere))
        .isInstanceOf(ExecutionException.class)
        .hasCauseInstanceOf(WrongThreadException.class);
  }

  @CudaTest
  void closedStream_isRefused_andItsCallbacksStillRun(Cuda cuda) throws Exception {
    CudaStream stream = cuda.device(0).createStream();
    CompletableFuture<Void> first;
    CompletableFuture<Void> second;
    try (Gate _ = Gate.on(stream)) {
      first = stream.addCallback(() -> {});
      second = stream.addCallback(() -> {});
      stream.close();
      assertThatThrownBy(() -> stream.addCallback(() -> {}))
          .isInstanceOf(IllegalStateException.class);
    }
    await(first);
    await(second);
  }

  private static void onThreads(int count, Runnable body) throws Exception {
    List<Thread> threads = new ArrayList<>();
    AtomicInteger ended = new AtomicInteger();
    for (int i = 0; i < count; i++) {
      threads.add(
          Thread.ofPlatform()
              .start(() -> {
                body.run();
                ended.incrementAndGet();
              }));
    }
    for (Thread thread : threads) {
      assertThat(thread.join(java.time.Duration.ofSeconds(PATIENCE_SECONDS))).isTrue();
    }
    assertThat(ended.get()).isEqualTo(count);
  }

  private static void close(AutoCloseable resource) {
    try {
      resource.close();
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  private static void await(CompletableFuture<Void> future) throws Exception {
    future.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
  }
}

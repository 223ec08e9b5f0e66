package io.cuvette.testkit.memory;

import static io.cuvette.testkit.support.Sizes.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PoolOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Forgetting;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.junit.jupiter.api.Timeout;

/** The function that gives adopted memory back is called once, also if it throws. */
@Timeout(60)
class AdoptedFreeTest {
  private final AtomicInteger frees = new AtomicInteger();
  private final RuntimeException mine = new UnsupportedOperationException("mine");

  private Buffer adopted(Cuda cuda, Buffer memory) {
    return adopted(cuda, memory, mine);
  }

  private Buffer adopted(Cuda cuda, Buffer memory, RuntimeException failure) {
    return cuda.device(0)
        .adopt(
            memory.address(),
            64,
            () -> {
              frees.incrementAndGet();
              throw failure;
            });
  }

  private static Buffer memory(Cuda cuda) {
    return MemoryResource.direct().allocate(64, cuda.currentStream());
  }

  @CudaTest
  void close_throwsWhatItThrew_andDoesNotCallItAgain(Cuda cuda) {
    try (Buffer memory = memory(cuda)) {
      Buffer adopted = adopted(cuda, memory);
      assertThatThrownBy(adopted::close).isSameAs(mine);
      adopted.close();
      assertThat(adopted.isClosed()).isTrue();
      assertThat(cuda.leaksFound()).isZero(); // and looks for what could not be released
      assertThat(frees).hasValue(1);
    }
    cuda.device(0).synchronize();
    assertThat(frees).hasValue(1);
  }

  @CudaTest(tidy = false)
  void error_isNoOtherReasonToCallItAgain(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    Buffer adopted =
        cuda.device(0)
            .adopt(
                memory(cuda).address(),
                64,
                () -> {
                  frees.incrementAndGet();
                  throw new AssertionError("mine");
                });
    assertThatThrownBy(adopted::close).isInstanceOf(AssertionError.class);
    cuda.close();
    assertThat(frees).hasValue(1);
  }

  @CudaTest
  void tryWithResources_suppressesIt(Cuda cuda) {
    try (Buffer memory = memory(cuda)) {
      assertThatThrownBy(
              () -> {
                try (Buffer _ = adopted(cuda, memory)) {
                  throw new IllegalStateException("body");
                }
              })
          .hasMessage("body")
          .hasSuppressedException(mine);
    }
    assertThat(frees).hasValue(1);
  }

  @CudaTest(tidy = false)
  void forgottenMemory_isFoundAndReported_andWhoeverFindsItIsTold(Subject subject)
      throws InterruptedException {
    AtomicInteger reported = new AtomicInteger();
    Cuda cuda = subject.open(options -> options.withLeakListener(_ -> reported.incrementAndGet()));
    AtomicReference<Throwable> told = new AtomicReference<>();
    Buffer memory = memory(cuda);
    Forgetting.of(() -> adopted(cuda, memory));
    boolean found =
        Forgetting.collectUntil(() -> {
          try {
            return cuda.leaksFound() == 1;
          } catch (UnsupportedOperationException e) {
            told.set(e);
            return false;
          }
        });
    assertThat(found).isTrue();
    assertThat(told.get()).isSameAs(mine);
    assertThat(reported).hasValue(1);
    cuda.close();
    assertThat(frees).hasValue(1);
  }

  @CudaTest(tidy = false)
  void closeOfTheCuda_throwsIt_andClosesAll(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    Buffer memory = memory(cuda);
    Buffer adopted = adopted(cuda, memory);
    assertThatThrownBy(cuda::close).isSameAs(mine);
    assertThat(cuda.isClosed()).isTrue();
    assertThat(memory.isClosed()).isTrue();
    assertThat(adopted.isClosed()).isTrue();
    adopted.close();
    assertThat(frees).hasValue(1);
  }

  /** There it is called after the callback, when nobody is left to be told but the thread. */
  @CudaTest
  void closeInsideACallback_tellsTheThread(Cuda cuda) throws Exception {
    tellsTheThread(cuda, mine);
    assertThat(frees).hasValue(1);
  }

  /** What the library itself meets there is tried again; this is not, and was told to nobody. */
  @CudaTest
  void errorOfCuda_isToldToTheThreadToo(Cuda cuda) throws Exception {
    tellsTheThread(cuda, new CudaException(CudaStatus.INVALID_VALUE, "mine()", "mine"));
    assertThat(frees).hasValue(1);
  }

  private void tellsTheThread(Cuda cuda, RuntimeException failure) throws Exception {
    CompletableFuture<Throwable> uncaught = new CompletableFuture<>();
    try (CudaStream stream = cuda.device(0).createStream();
        Buffer memory = memory(cuda)) {
      Buffer adopted = adopted(cuda, memory, failure);
      CompletableFuture<Void> _ =
          stream.addCallback(() -> {
            Thread.currentThread().setUncaughtExceptionHandler((_, e) -> uncaught.complete(e));
            adopted.close();
          });
      assertThat(uncaught.get(60, TimeUnit.SECONDS)).isSameAs(failure);
      cuda.device(0).synchronize();
    }
  }

  /** It is not the driver's, which could wait for what the callback waits for. */
  @CudaTest
  void memoryIsGivenBack_whileACallbackHoldsAStream(Cuda cuda, CudaStream stream) throws Exception {
    AtomicInteger given = new AtomicInteger();
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    try (Buffer memory = MemoryResource.direct().allocate(64, cuda.device(0).nullStream())) {
      Buffer adopted = cuda.device(0).adopt(memory.address(), 64, given::incrementAndGet);
      CompletableFuture<Void> done =
          stream.addCallback(() -> {
            begun.countDown();
            try {
              boolean _ = goOn.await(60, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
              throw new AssertionError(e);
            }
          });
      try {
        assertThat(begun.await(60, TimeUnit.SECONDS)).isTrue();
        adopted.close();
        assertThat(given).hasValue(1);
      } finally {
        goOn.countDown();
      }
      done.get(60, TimeUnit.SECONDS);
    }
  }

  /** A pool has it longer than its buffers, and takes work for done that is only queued. */
  @CudaTest(simulatedOnly = true)
  void memoryBelowAPool_isFreedWhenTheWorkOfThePoolsStreamIsDone(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    AtomicReference<Gate> gate = new AtomicReference<>();
    AtomicBoolean opened = new AtomicBoolean();
    for (String call : List.of("eventSynchronize", "streamSynchronize")) {
      driver.answer(
          call,
          waiting -> {
            opened.set(true);
            gate.get().open();
            return waiting.proceed();
          });
    }
    for (Consumer<MemoryPool> end :
        List.<Consumer<MemoryPool>>of(
            MemoryPool::freeAllBlocks, pool -> pool.trim(0), MemoryPool::close)) {
      frees.set(0);
      AtomicBoolean early = new AtomicBoolean();
      try (Buffer memory = MemoryResource.direct().allocate(32 * MIB, stream);
          MemoryPool pool = poolOf(cuda, memory, () -> early.set(!opened.get()))) {
        Buffer block = pool.allocate(MIB, stream);
        gate.set(Gate.on(stream));
        opened.set(false);
        block.fill((byte) 1, stream);
        block.close();
        end.accept(pool);
        assertThat(frees).hasValue(1);
        assertThat(early).isFalse();
        stream.synchronize();
      }
    }
  }

  private MemoryPool poolOf(Cuda cuda, Buffer memory, Runnable free) {
    MemoryResource upstream =
        (bytes, _) ->
            cuda.device(0)
                .adopt(
                    memory.address(),
                    bytes,
                    () -> {
                      frees.incrementAndGet();
                      free.run();
                    });
    return new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(upstream));
  }
}

package io.cuvette.testkit.stream;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.Scope;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Hold;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Latches;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Timeout;

/** Each callback holds its own stream, and what fails late is told to who is there. */
@Timeout(300)
class HeldStreamsTest {
  private static final long PATIENCE_SECONDS = 40;
  private static final long HELD_MILLIS = 200;
  private static final int REFUSED = 17_000;
  private static final int BYTES = 4096;

  /** Two callbacks at once: the one that returns lets its stream go on, and not the other's. */
  @CudaTest(seeds = 5)
  void callbackThatReturns_letsItsOwnStreamGoOnAlone(
      Cuda cuda, @NonBlocking CudaStream one, @NonBlocking CudaStream two) throws Exception {
    CountDownLatch gate = new CountDownLatch(1);
    CountDownLatch begun = new CountDownLatch(1);
    try (PinnedBuffer seen = cuda.directPinned().allocate(8)) {
      seen.fill((byte) 0);
      CompletableFuture<Void> held =
          one.addCallback(() -> {
            begun.countDown();
            Latches.await(gate);
          });
      seen.fill((byte) 1, one);
      begun.await();
      for (int i = 0; i < 3; i++) {
        two.addCallback(() -> {}).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
        two.synchronize();
      }
      for (int i = 0; i < 100; i++) {
        assertThat(one.isDone()).isFalse();
      }
      gate.countDown();
      held.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
      one.synchronize();
      assertThat(seen.segment().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 1);
    } finally {
      gate.countDown();
    }
  }

  /** The stream comes to it before its own wait is queued: the callback begins after that. */
  @CudaTest(simulatedOnly = true, seeds = 5)
  void callbackBegins_whenAllOfItIsQueued(ScriptedDriver driver, @NonBlocking CudaStream stream)
      throws Exception {
    stream.addCallback(() -> {}).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    CountDownLatch begun = new CountDownLatch(1);
    AtomicReference<CompletableFuture<Void>> added = new AtomicReference<>();
    AtomicBoolean wasEarly = new AtomicBoolean();
    long handle = stream.handle(); // not below the call: that would wait for it
    driver.answer(
        "streamWaitValue32",
        call -> {
          for (int i = 0; i < 100; i++) { // each query lets work go on
            boolean _ = call.below().streams().streamQuery(0, handle);
          }
          wasEarly.set(begun.await(HELD_MILLIS, TimeUnit.MILLISECONDS));
          return call.proceed();
        });
    added.set(stream.addCallback(begun::countDown));
    driver.unscript("streamWaitValue32");
    added.get().get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    assertThat(wasEarly).isFalse();
    stream.synchronize();
  }

  /** Each refused callback gives its word back: one piece of memory does for any number. */
  @CudaTest(simulatedOnly = true)
  void refusedCallbacks_useUpNoMemory(ScriptedDriver driver, @NonBlocking CudaStream stream) {
    driver.fail("streamWaitValue32", CudaStatus.NOT_PERMITTED);
    long before = driver.count("memHostAlloc");
    for (int i = 0; i < REFUSED; i++) {
      assertThatThrownBy(() -> stream.addCallback(() -> {})).isInstanceOf(CudaException.class);
    }
    driver.unscript("streamWaitValue32");
    assertThat(driver.count("memHostAlloc") - before).isLessThanOrEqualTo(1);
  }

  private static Buffer pinnedOf(CudaDevice device) {
    try (Scope _ = device.use()) {
      return device.cuda().allocatePinned(BYTES);
    }
  }

  /**
   * A copy by way of the owner's stream that could not be joined to the given one is waited for.
   */
  @CudaTest(devices = 2, simulatedOnly = true)
  void copyThatItsStreamDoesNotWaitFor_isOverWhenTheCallHasFailed(
      Cuda cuda,
      ScriptedDriver driver,
      DeviceMemoryResource pool,
      @OnDevice(1) @NonBlocking CudaStream other) {
    try (DeviceBuffer memory = pool.allocate(BYTES);
        Buffer source = pinnedOf(cuda.device(1))) {
      memory.fill((byte) 1);
      source.fill((byte) 2);
      cuda.devices().forEach(CudaDevice::synchronize);
      int[] waits = new int[1];
      driver.answer(
          "streamWaitEvent",
          call -> {
            if (++waits[0] == 2) {
              throw new CudaException(CudaStatus.NOT_PERMITTED, call.name(), "scripted");
            }
            return call.proceed();
          });
      long before = driver.count("streamSynchronize");
      assertThatThrownBy(() -> memory.copyFrom(source, other)).isInstanceOf(CudaException.class);
      driver.unscript("streamWaitEvent");
      assertThat(waits[0]).isEqualTo(2);
      assertThat(driver.count("streamSynchronize")).isGreaterThan(before);
    }
  }

  /** Its copy is in a call of the driver when it is closed, and frees it after that. */
  @CudaTest(simulatedOnly = true, tidy = false)
  void freeThatFailsBehindACopy_isToldToTheThreadOfTheCopy(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) throws Exception {
    RuntimeException mine = new UnsupportedOperationException("mine");
    Buffer memory = MemoryResource.direct().allocate(BYTES, stream);
    Buffer source = MemoryResource.direct().allocate(BYTES, stream);
    Buffer adopted =
        cuda.device(0)
            .adopt(
                memory.address(),
                BYTES,
                () -> {
                  throw mine;
                });
    assertThat(closedBehindACopy(driver, adopted, source, stream).uncaught).isSameAs(mine);
    AssertionError error = new AssertionError("of the driver");
    driver.answer(
        "memFree",
        call -> {
          driver.unscript("memFree");
          throw error;
        });
    assertThat(closedBehindACopy(driver, memory, source, stream).thrown).isSameAs(error);
  }

  private record Told(Throwable thrown, Throwable uncaught) {}

  private static Told closedBehindACopy(
      ScriptedDriver driver, Buffer target, Buffer source, CudaStream stream) throws Exception {
    AtomicReference<Throwable> thrown = new AtomicReference<>();
    AtomicReference<Throwable> uncaught = new AtomicReference<>();
    Hold hold = driver.hold("memcpyAsync");
    Thread worker =
        Thread.ofPlatform()
            .uncaughtExceptionHandler((_, e) -> uncaught.set(e))
            .start(() -> {
              try {
                target.copyFrom(source, stream);
              } catch (RuntimeException | Error e) {
                thrown.set(e);
              }
            });
    hold.awaitBegun();
    target.close();
    hold.release();
    worker.join();
    return new Told(thrown.get(), uncaught.get());
  }
}

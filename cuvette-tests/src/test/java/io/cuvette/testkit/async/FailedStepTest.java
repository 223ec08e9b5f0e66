package io.cuvette.testkit.async;

import static io.cuvette.driver.CudaStatus.NOT_PERMITTED;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Latches;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** What a step that failed had begun is taken back, long before the Cuda is closed. */
class FailedStepTest {
  private static final long BYTES = 1 << 20;

  @CudaTest(simulatedOnly = true)
  void poolThatCouldNotBeBorrowed_doesNotKeepItsOwnerFromEndingIt(
      Cuda cuda, ScriptedDriver driver) {
    CudaDevice device = cuda.device(0);
    var resource = new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS);
    cuda.driver().pools().deviceSetMemPool(0, resource.handle());
    driver.fail("memPoolGetAttribute", NOT_PERMITTED, 1);
    assertThatThrownBy(() -> new AsyncMemoryPool(cuda, AsyncPoolChoice.ofCurrent()))
        .isInstanceOf(CudaException.class);
    resource.close();
    assertThat(driver.count("memPoolDestroy")).isEqualTo(1);
  }

  @CudaTest(simulatedOnly = true)
  void pinnedPoolThatCouldNotBeBorrowed_doesNotKeepItsOwnerFromEndingIt(
      Cuda cuda, ScriptedDriver driver) {
    var resource = new PinnedMemoryResource(cuda, PinnedMemoryResourceOptions.DEFAULTS);
    cuda.driver()
        .pools()
        .memSetMemPool(MemLocationType.HOST, 0, MemAllocationType.PINNED, resource.handle());
    driver.fail("memPoolGetAccess", NOT_PERMITTED, 1);
    assertThatThrownBy(() -> new PinnedMemoryResource(cuda)).isInstanceOf(CudaException.class);
    resource.close();
    assertThat(driver.count("memPoolDestroy")).isEqualTo(1);
  }

  /** Also if the stream may be capturing, its handle being known. */
  @CudaTest(simulatedOnly = true)
  void freeThatFails_isToldToWhoeverCloses(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream own, CudaStream other) {
    var options = DeviceMemoryResourceOptions.DEFAULTS;
    try (var resource = new DeviceMemoryResource(cuda.device(0), options)) {
      for (int i = 0; i < 2; i++) {
        assertThat(i == 0 || own.handle() != 0).isTrue();
        Buffer buffer = resource.allocate(BYTES, own);
        buffer.recordUse(other);
        driver.fail("memFreeAsync", NOT_PERMITTED).fail("memFree", NOT_PERMITTED);
        assertThat(refused(buffer::close)).as("close %d", i).isEqualTo(NOT_PERMITTED);
        driver.unscript("memFreeAsync");
        driver.unscript("memFree");
      }
    }
  }

  /** It waits for a stream, its own being gone; then its free fails, and is tried again. */
  @CudaTest(simulatedOnly = true)
  void blockWhoseLateFreeFailed_isFreedByTheNextLook(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream other) {
    CudaDevice device = cuda.device(0);
    try (var resource = new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS)) {
      CudaStream gone = device.createStream();
      Buffer used = resource.allocate(BYTES, gone);
      other.waitFor(gone);
      CountDownLatch gate = new CountDownLatch(1);
      cuda.driver().streams().launchHostFunc(0, other.handle(), () -> Latches.await(gate));
      used.recordUse(other);
      gone.close();
      used.close();
      driver.fail("memFreeAsync", NOT_PERMITTED).fail("memFree", NOT_PERMITTED);
      gate.countDown();
      cuda.driver().devices().ctxSynchronize(0); // what is left of the stream that is gone, too
      assertThat(refused(() -> resource.allocate(BYTES))).isEqualTo(NOT_PERMITTED);
      driver.unscript("memFreeAsync");
      driver.unscript("memFree");
      resource.allocate(BYTES).close();
      device.synchronize();
      assertThat(resource.attributes().usedMemCurrent()).isZero();
    }
  }

  /** It waits for another stream, its own being gone; who is short waits for that in turn. */
  @CudaTest(simulatedOnly = true)
  void blockWhoseLateFreeWaits_isWaitedForByWhoIsShort(
      Cuda cuda,
      ScriptedDriver driver,
      @NonBlocking CudaStream other,
      @NonBlocking CudaStream stream) {
    CudaDevice device = cuda.device(0);
    var options = DeviceMemoryResourceOptions.DEFAULTS.withMaxBytes(32 << 20);
    try (var resource = new DeviceMemoryResource(device, options)) {
      CudaStream gone = device.createStream();
      Buffer used = resource.allocate(32 << 20, gone);
      other.waitFor(gone);
      try (Gate gate = Gate.on(other)) {
        used.recordUse(other);
        gone.close();
        used.close();
        AtomicInteger attempts = new AtomicInteger();
        driver.answer(
            "memAllocFromPoolAsync",
            call -> {
              if (attempts.incrementAndGet() == 3) {
                gate.open(); // by then nobody looks who does not wait
              }
              return call.proceed();
            });
        try (Buffer next = resource.allocate(32 << 20, stream)) {
          assertThat(next.byteSize()).isEqualTo(32 << 20);
        }
      }
    }
  }

  @CudaTest(simulatedOnly = true)
  void plainMemoryThatCouldNotBeFreed_isFreedByTheNextLook(
      Cuda cuda, SimulatedDriver simulator, ScriptedDriver driver) {
    Buffer buffer = MemoryResource.direct().allocate(BYTES, cuda.currentStream());
    driver.fail("memFree", NOT_PERMITTED, 1);
    assertThat(refused(buffer::close)).isEqualTo(NOT_PERMITTED);
    long _ = cuda.leaksFound();
    assertThat(simulator.liveBytes(0)).isZero();
  }

  @CudaTest(simulatedOnly = true)
  void poolThatCouldNotBeDestroyed_isDestroyedByTheNextLook(Cuda cuda, ScriptedDriver driver) {
    var resource = new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    driver.fail("memPoolDestroy", NOT_PERMITTED, 1);
    assertThat(refused(resource::close)).isEqualTo(NOT_PERMITTED);
    assertThat(driver.count("memPoolDestroy")).isZero();
    cuda.device(0).synchronize();
    assertThat(driver.count("memPoolDestroy")).isEqualTo(1);
  }

  /** No Java heap, or no stack: it still waits for its end. */
  @CudaTest(simulatedOnly = true)
  void poolWhoseEndMetAnError_isDestroyedByTheNextLook(Cuda cuda, ScriptedDriver driver) {
    var resource = new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    failOnce(driver, new OutOfMemoryError("the test's"));
    assertThatThrownBy(resource::close).isInstanceOf(OutOfMemoryError.class);
    assertThat(driver.count("memPoolDestroy")).isZero();
    cuda.device(0).synchronize();
    assertThat(driver.count("memPoolDestroy")).isEqualTo(1);
  }

  /** Nobody has it, so that nobody closes it once more. */
  @CudaTest(simulatedOnly = true)
  void poolThatWasNotMade_isDestroyedByTheNextLook_ifItsEndMetAnError(
      Cuda cuda, ScriptedDriver driver) {
    driver.fail("memPoolSetAttribute", NOT_PERMITTED, 1);
    failOnce(driver, new OutOfMemoryError("the test's"));
    CudaDevice device = cuda.device(0);
    assertThatThrownBy(() -> new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS))
        .isInstanceOf(CudaException.class);
    assertThat(driver.count("memPoolDestroy")).isZero();
    cuda.device(0).synchronize();
    assertThat(driver.count("memPoolDestroy")).isEqualTo(1);
  }

  private static void failOnce(ScriptedDriver driver, Error error) {
    AtomicInteger calls = new AtomicInteger();
    driver.answer(
        "memPoolDestroy",
        call -> {
          if (calls.incrementAndGet() == 1) {
            throw error;
          }
          return call.proceed();
        });
  }

  @CudaTest(simulatedOnly = true)
  void cachedMemoryThatCouldNotBeFreed_isFreedByTheNextLook(
      Cuda cuda, SimulatedDriver simulator, ScriptedDriver driver) {
    MemoryPool pool = new MemoryPool(cuda);
    pool.allocate(BYTES).close();
    driver.fail("memFree", NOT_PERMITTED, 1);
    assertThat(refused(pool::close)).isEqualTo(NOT_PERMITTED);
    assertThat(simulator.liveBytes(0)).isEqualTo(BYTES);
    long _ = cuda.leaksFound();
    assertThat(simulator.liveBytes(0)).isZero();
  }

  /** Its stream is gone, so that it is looked for from the first failure on. */
  @CudaTest(simulatedOnly = true)
  void blockWhoseFreeFailed_isFreedOnce_byWhoeverLooks(Cuda cuda, ScriptedDriver driver) {
    CudaDevice device = cuda.device(0);
    try (var resource = new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS)) {
      CudaStream gone = device.createStream();
      Buffer buffer = resource.allocate(BYTES, gone);
      gone.synchronize();
      gone.close();
      AtomicInteger calls = new AtomicInteger();
      driver.answer(
          "memFreeAsync",
          call ->
              switch (calls.incrementAndGet()) {
                case 1 -> throw new CudaException(NOT_PERMITTED, call.name(), "scripted");
                case 2 -> {
                  onAnotherThread(device::synchronize); // which looks for what can be freed
                  yield call.proceed();
                }
                default -> call.proceed();
              });
      assertThatThrownBy(buffer::close)
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(NOT_PERMITTED))
          .hasNoSuppressedExceptions();
      device.synchronize();
      assertThat(calls).hasValue(2);
      assertThat(resource.attributes().usedMemCurrent()).isZero();
    }
  }

  /** A thread asks whether a closed pool can end, and gets its answer when another has ended it. */
  @CudaTest(simulatedOnly = true)
  void poolThatAnotherThreadEnded_isNoFailureOfAQuestion(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    CudaDevice device = cuda.device(0);
    var ending = new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS);
    CountDownLatch gate = new CountDownLatch(1);
    CompletableFuture<Void> held = stream.addCallback(() -> Latches.await(gate));
    ending.allocate(BYTES, stream).close();
    ending.close();
    gate.countDown();
    held.join();
    cuda.driver().devices().ctxSynchronize(0);
    AtomicInteger calls = new AtomicInteger();
    driver.answer(
        "streamQuery",
        call -> {
          if (calls.incrementAndGet() > 1) {
            return call.proceed();
          }
          onAnotherThread(stream::synchronize); // which ends the pool
          throw new CudaException(NOT_PERMITTED, call.name(), "scripted");
        });
    new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS).close();
    assertThat(calls).hasValueGreaterThan(1);
    assertThat(driver.count("memPoolDestroy")).isEqualTo(2);
  }

  private static void onAnotherThread(Runnable step) throws Exception {
    CompletableFuture.runAsync(step, Thread.ofPlatform()::start).get(60, TimeUnit.SECONDS);
  }

  /** Else it would come after what the wait releases. */
  @CudaTest(simulatedOnly = true)
  void asyncMemoryWhoseFreeFailed_isFreedBeforeTheNextWait(
      ScriptedDriver driver, @NonBlocking CudaStream stream) {
    Buffer buffer = MemoryResource.async().allocate(BYTES, stream);
    stream.synchronize();
    driver.fail("memFreeAsync", NOT_PERMITTED, 2); // as it is closed it is tried again at once
    assertThat(refused(buffer::close)).isEqualTo(NOT_PERMITTED);
    driver.note("memFreeAsync", "streamSynchronize");
    stream.synchronize();
    assertThat(driver.takeNotes()).containsExactly("memFreeAsync", "streamSynchronize");
  }

  private static @Nullable CudaStatus refused(Runnable step) {
    try {
      step.run();
      return null;
    } catch (CudaException e) {
      return e.status();
    }
  }
}

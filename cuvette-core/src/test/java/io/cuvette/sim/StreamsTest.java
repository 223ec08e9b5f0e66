package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Latches;
import io.cuvette.driver.CudaStatus;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Streams as handles, and host functions. */
class StreamsTest extends SimTestBase {
  private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();

  @Test
  void handleValues_areReused_idsNever() {
    Set<Long> handles = new HashSet<>();
    Set<Long> ids = new HashSet<>();
    for (int i = 0; i < 100; i++) {
      long stream = stream(0);
      handles.add(stream);
      ids.add(driver.streams().streamGetId(0, stream));
      driver.streams().streamDestroy(0, stream);
    }
    assertThat(handles).hasSize(1);
    assertThat(ids).hasSize(100);
    assertThat(driver.liveStreams()).isZero();
  }

  @Test
  void newStreamWithTheValueOfAnOldOne_doesNotWaitForItsWork() {
    long address = driver.memory().memAlloc(0, 64);
    long old = stream(0);
    driver.transfers().memsetD8Async(0, address, (byte) 1, 64, old);
    driver.streams().streamDestroy(0, old);
    long fresh = stream(0);
    assertThat(fresh).isEqualTo(old);
    assertThat(driver.streams().streamQuery(0, fresh)).isTrue();
  }

  @Test
  void eventHandles_areNotReused() {
    long event = driver.events().eventCreate(0, 0);
    driver.events().eventDestroy(0, event);
    driver.events().eventCreate(0, 0);
    assertFails(CudaStatus.INVALID_HANDLE, "destroyed", () -> driver.events().eventQuery(0, event));
    assertThat(driver.liveEvents()).isEqualTo(1);
  }

  @Test
  void wrongHandle_isNamed() {
    long stream = stream(0);
    long event = driver.events().eventCreate(0, 0);
    long address = driver.memory().memAlloc(1, 64);
    CudaStatus status = CudaStatus.INVALID_HANDLE;
    assertFails(status, "this is an event", () -> driver.streams().streamSynchronize(0, event));
    assertFails(status, "this is a stream", () -> driver.events().eventRecord(0, stream, stream));
    assertFails(status, "an address of device 1", () -> driver.streams().streamQuery(0, address));
    assertFails(status, "no handle", () -> driver.streams().streamQuery(0, 77));
    assertFails(status, "never made", () -> driver.streams().streamQuery(0, NO_HANDLE));
    assertFails(status, "no handle", () -> driver.streams().streamDestroy(0, 0));
    assertFails(status, "a live graph", () -> driver.graphs().graphDestroy(stream));
    driver.streams().streamDestroy(0, stream);
    assertFails(status, "destroyed", () -> driver.streams().streamDestroy(0, stream));
    assertFails(
        status,
        "destroyed",
        () -> driver.transfers().memsetD8Async(1, address, (byte) 0, 1, stream));
  }

  @ParameterizedTest
  @CsvSource({"0, 0", "-3, -3", "-5, -5", "-9, -5", "4, 0"})
  void priority_isClamped(int wanted, int given) {
    long stream = driver.streams().streamCreateWithPriority(1, 1, wanted);
    assertThat(driver.streams().streamGetPriority(1, stream)).isEqualTo(given);
    assertThat(driver.streams().streamGetFlags(1, stream)).isEqualTo(1);
    assertThat(driver.streams().streamGetDevice(0, stream)).isEqualTo(1);
  }

  @Test
  void defaultStreams_areOfTheGivenDevice() {
    for (long handle = 0; handle <= 2; handle++) {
      assertThat(driver.streams().streamGetDevice(1, handle)).isEqualTo(1);
      assertThat(driver.streams().streamGetPriority(1, handle)).isZero();
      assertThat(driver.streams().streamQuery(1, handle)).isTrue();
    }
    assertThat(driver.streams().streamGetId(0, 0)).isEqualTo(driver.streams().streamGetId(0, 1));
    assertThat(driver.streams().streamGetId(0, 0)).isNotEqualTo(driver.streams().streamGetId(1, 0));
    assertFails(
        CudaStatus.INVALID_VALUE,
        "flags: 2",
        () -> driver.streams().streamCreateWithPriority(0, 2, 0));
  }

  @Test
  void queryLoop_ends() {
    long stream = stream(0);
    long address = driver.memory().memAlloc(0, 64);
    for (int i = 0; i < 50; i++) {
      driver.transfers().memsetD8Async(0, address, (byte) i, 64, stream);
    }
    int asked = 0;
    while (!driver.streams().streamQuery(0, stream)) {
      assertThat(asked++).isLessThan(5_000);
    }
  }

  @Test
  @Timeout(60)
  void workIsDone_timeAfterTime_forAProgramThatOnlyLooksAtMemory() {
    try (SimulatedDriver lazy = SimulatedDriver.open(SimulatedOptions.parse("pace=lazy"))) {
      MemorySegment memory = lazy.memory().memHostAlloc(0, 4, 0);
      VarHandle value = ValueLayout.JAVA_BYTE.varHandle();
      for (byte i = 1; i < 4; i++) {
        lazy.transfers().memsetD8Async(0, memory.address(), i, 4, 0);
        while ((byte) value.getVolatile(memory, 0L) != i) {
          assertThat(Thread.currentThread().isInterrupted()).as("out of time").isFalse();
          Thread.onSpinWait();
        }
      }
    }
  }

  @Test
  @Timeout(60)
  void hostFunctions_runInStreamOrder_evenIfNobodyWaits() throws InterruptedException {
    long stream = stream(0);
    List<Integer> ran = new CopyOnWriteArrayList<>();
    CountDownLatch last = new CountDownLatch(1);
    for (int i = 0; i < 20; i++) {
      int number = i;
      driver.streams().launchHostFunc(0, stream, () -> ran.add(number));
    }
    driver.streams().launchHostFunc(0, stream, last::countDown);
    assertThat(last.await(40, TimeUnit.SECONDS)).isTrue();
    assertThat(ran).hasSize(20).isSorted();
  }

  @Test
  @Timeout(60)
  void synchronize_waitsForHostFunctions_andTheirStreamOnly() throws InterruptedException {
    long stream = stream(0);
    long other = stream(0);
    CountDownLatch go = new CountDownLatch(1);
    CountDownLatch started = new CountDownLatch(1);
    List<String> order = new ArrayList<>();
    driver
        .streams()
        .launchHostFunc(
            0,
            stream,
            () -> {
              started.countDown();
              Latches.await(go);
              order.add("function");
            });
    driver.transfers().memsetD8Async(0, driver.memory().memAlloc(0, 64), (byte) 0, 64, other);
    driver.streams().streamSynchronize(0, other);
    assertThat(started.await(40, TimeUnit.SECONDS)).isTrue();
    assertThat(driver.streams().streamQuery(0, stream)).isFalse();
    go.countDown();
    driver.streams().streamSynchronize(0, stream);
    assertThat(order).containsExactly("function");
  }

  @Test
  @Timeout(60)
  void interruptedThread_stillWaitsForHostFunctions_andStaysInterrupted() {
    long stream = stream(0);
    boolean[] ran = new boolean[1];
    driver.streams().launchHostFunc(0, stream, () -> ran[0] = true);
    Thread.currentThread().interrupt();
    driver.streams().streamSynchronize(0, stream);
    assertThat(Thread.interrupted()).isTrue();
    assertThat(ran[0]).isTrue();
  }

  @Test
  @Timeout(60)
  void hostFunction_mustNotCallTheDriver() {
    AtomicReference<Throwable> thrown = new AtomicReference<>();
    long stream = stream(0);
    driver
        .streams()
        .launchHostFunc(
            0,
            stream,
            () -> {
              try {
                driver.memory().memAlloc(0, 64);
              } catch (RuntimeException e) {
                thrown.set(e);
              }
            });
    driver.streams().streamSynchronize(0, stream);
    assertThat(thrown.get()).hasMessageContaining("CUDA_ERROR_NOT_PERMITTED");
  }

  @Test
  @Timeout(60)
  void hostFunctionThatThrows_failsItsDevice() {
    long stream = stream(0);
    driver
        .streams()
        .launchHostFunc(
            0,
            stream,
            () -> {
              throw new IllegalStateException("oops");
            });
    assertFails(
        CudaStatus.LAUNCH_FAILED, "oops", () -> driver.streams().streamSynchronize(0, stream));
    driver.devices().ctxSynchronize(1);
  }

  @Test
  @Timeout(60)
  void firstFailureOfADevice_isTheOneThatStays() {
    long one = stream(0);
    long other = stream(0);
    CountDownLatch goOn = new CountDownLatch(1);
    driver
        .streams()
        .launchHostFunc(
            0,
            one,
            () -> {
              Latches.await(goOn);
              throw new IllegalStateException("the second");
            });
    long later = driver.ordered().memAllocAsync(0, 64, one);
    driver.transfers().memsetD8Async(0, later, (byte) 1, 64, other);
    CudaStatus first = CudaStatus.ILLEGAL_ADDRESS;
    assertFails(first, "later in stream", () -> driver.streams().streamSynchronize(0, other));
    goOn.countDown();
    long behind = stream(1);
    driver.streams().launchHostFunc(1, behind, () -> {});
    driver.streams().streamSynchronize(1, behind);
    assertFails(first, "later in stream", () -> driver.devices().ctxSynchronize(0));
  }

  @Test
  @Timeout(60)
  void legacyStream_isBusy_whileABlockingStreamIs_andNoOther() {
    CountDownLatch apart = hold(1, stream(1));
    assertThat(driver.streams().streamQuery(1, 0)).isTrue();
    apart.countDown();
    CountDownLatch goOn = hold(0, driver.streams().streamCreateWithPriority(0, 0, 0));
    for (int i = 0; i < 20; i++) {
      assertThat(driver.streams().streamQuery(0, 0)).isFalse();
    }
    assertThat(driver.streams().streamQuery(1, 0)).as("of another device").isTrue();
    goOn.countDown();
    driver.streams().streamSynchronize(0, 0);
    assertThat(driver.streams().streamQuery(0, 0)).isTrue();
  }

  @Test
  void legacyStream_isIdleAgain_onceBlockingStreamsAre() {
    long blocking = driver.streams().streamCreateWithPriority(0, 0, 0);
    long address = driver.memory().memAlloc(0, 64);
    driver.transfers().memsetD8Async(0, address, (byte) 1, 64, blocking);
    driver.streams().streamSynchronize(0, blocking);
    assertThat(driver.streams().streamQuery(0, 0)).isTrue();
  }

  @Test
  @Timeout(60)
  void hostFunctionThatThrowsWhatHasNoText_failsItsDevice() {
    long stream = stream(0);
    driver
        .streams()
        .launchHostFunc(
            0,
            stream,
            () -> {
              throw new IllegalStateException("oops") {
                @Override
                public String toString() {
                  throw new StackOverflowError();
                }
              };
            });
    assertFails(
        CudaStatus.LAUNCH_FAILED,
        "StackOverflowError",
        () -> driver.streams().streamSynchronize(0, stream));
    driver.devices().ctxSynchronize(1);
  }

  @Test
  @Timeout(60)
  void closing_endsWaits_andLaterCallsAreRefused() throws InterruptedException {
    CountDownLatch never = new CountDownLatch(1);
    CountDownLatch started = new CountDownLatch(1);
    long stream = stream(0);
    driver
        .streams()
        .launchHostFunc(
            0,
            stream,
            () -> {
              started.countDown();
              Latches.await(never);
            });
    AtomicReference<Throwable> thrown = new AtomicReference<>();
    Thread waiter =
        Thread.ofVirtual()
            .start(() -> {
              try {
                driver.streams().streamSynchronize(0, stream);
              } catch (RuntimeException e) {
                thrown.set(e);
              }
            });
    assertThat(started.await(40, TimeUnit.SECONDS)).isTrue();
    driver.close();
    waiter.join();
    never.countDown();
    assertThat(thrown.get()).hasMessageContaining("DEINITIALIZED");
    assertFails(CudaStatus.DEINITIALIZED, "closed", () -> driver.memory().memAlloc(0, 64));
    driver.close();
  }

  /** The thread of the functions goes on, whatever one of them does to it. */
  @Test
  @Timeout(60)
  void hostFunctionThatInterruptsItsThread_losesNoOther() throws InterruptedException {
    long stream = stream(0);
    CountDownLatch queued = new CountDownLatch(1);
    CountDownLatch ran = new CountDownLatch(2);
    driver
        .streams()
        .launchHostFunc(
            0,
            stream,
            () -> {
              Latches.await(queued);
              Thread.currentThread().interrupt();
            });
    driver.streams().launchHostFunc(0, stream, ran::countDown);
    driver.streams().launchHostFunc(0, stream, ran::countDown);
    queued.countDown();
    assertThat(ran.await(40, TimeUnit.SECONDS)).isTrue();
    driver.streams().streamSynchronize(0, stream);
  }

  /** As on a GPU: the thread that waits runs the other streams meanwhile. */
  @Test
  @Timeout(60)
  void hostFunctionThatWaitsForAnotherStream_holdsUpItsOwnAlone() {
    MemorySegment word = driver.memory().memHostAlloc(0, 4, 0);
    word.fill((byte) 0);
    long stream = stream(0);
    long other = stream(0);
    driver
        .streams()
        .launchHostFunc(
            0,
            stream,
            () -> {
              while ((int) INT.getVolatile(word, 0L) == 0) {
                Thread.onSpinWait();
              }
            });
    driver.transfers().memsetD32Async(0, word.address(), 1, 1, other);
    driver.streams().streamSynchronize(0, stream);
    assertThat((int) INT.getVolatile(word, 0L)).isEqualTo(1);
  }
}

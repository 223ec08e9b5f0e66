package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.driver.CudaDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Streams that the host lets go on: what it knows by then comes before what is behind. */
@Timeout(60)
class SanitizerGateTest extends SanitizedCudaTestBase {
  private static final int BYTES = 4096;

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(60, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void workBehindACallback_comesAfterWhatThatWaitedFor() {
    try (Buffer buffer = cuda.allocate(BYTES, stream)) {
      buffer.fill((byte) 1, stream);
      CompletableFuture<Void> callback = other.addCallback(stream::synchronize);
      buffer.fill((byte) 2, other);
      callback.join();
      other.synchronize();
    }
    assertSilent();
  }

  @Test
  void workBehindACallback_comesAfterWhatOthersWaitedFor_beforeTheyLetItReturn() {
    CountDownLatch go = new CountDownLatch(1);
    try (Buffer buffer = cuda.allocate(BYTES, stream);
        Buffer beside = cuda.allocate(BYTES, stream)) {
      buffer.fill((byte) 1, stream);
      CompletableFuture<Void> callback = other.addCallback(() -> await(go));
      beside.copyFrom(buffer, other);
      buffer.fill((byte) 2, other);
      stream.synchronize();
      assertSilent();
      go.countDown();
      callback.join();
      other.synchronize();
    }
    assertSilent();
  }

  @Test
  void workBehindACallback_isARace_ifThatReturnsBefore() {
    CountDownLatch go = new CountDownLatch(1);
    try (Buffer buffer = cuda.allocate(BYTES, stream)) {
      buffer.fill((byte) 1, stream);
      CompletableFuture<Void> callback = other.addCallback(() -> await(go));
      buffer.fill((byte) 2, other);
      assertSilent();
      go.countDown();
      callback.join();
      other.synchronize();
      SanitizerReport report = assertOnly(Misuse.RACE);
      assertThat(report.message()).contains("memsetD8Async").contains("is not ordered after the");
      assertThat(report.sites().getFirst().getStackTrace())
          .extracting(StackTraceElement::getMethodName)
          .contains("workBehindACallback_isARace_ifThatReturnsBefore");
      cuda.device(0).synchronize();
      assertSilent();
    }
  }

  /** The callback is over: nobody can have waited in it since. */
  @Test
  void workBehindACallbackThatHasReturned_isARaceAtOnce() {
    try (Buffer buffer = cuda.allocate(BYTES, stream)) {
      CompletableFuture<Void> _ = other.addCallback(() -> {});
      other.synchronize();
      buffer.fill((byte) 1, stream);
      buffer.fill((byte) 2, other);
      assertOnly(Misuse.RACE);
      cuda.device(0).synchronize();
    }
  }

  @Test
  void workOfOtherStreams_andBeforeTheCallback_isARaceAtOnce() {
    CountDownLatch go = new CountDownLatch(1);
    try (Buffer buffer = cuda.allocate(BYTES, stream)) {
      buffer.fill((byte) 1, other);
      CompletableFuture<Void> callback = other.addCallback(() -> await(go));
      buffer.fill((byte) 2, stream);
      assertOnly(Misuse.RACE);
      go.countDown();
      callback.join();
      cuda.device(0).synchronize();
    }
  }

  /** Words that a wait goes on at, and one at which it does not. */
  @ParameterizedTest
  @CsvSource({"0, 5, 6, 4", "0, 5, 5, 4", "1, 5, 5, 6", "2, 5, 4, 2", "3, 5, 8, -1"})
  void wordThatTheHostWrites_letsTheStreamGoOn(int flags, int value, int opens, int holds) {
    for (boolean isRight : new boolean[] {true, false}) {
      CudaDriver below = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
      try (SanitizerDriver over = SanitizerDriver.reporting(below, reports::add, Misuse.LEAK)) {
        long first = over.streams().streamCreateWithPriority(0, 1, 0);
        long second = over.streams().streamCreateWithPriority(0, 1, 0);
        long third = over.streams().streamCreateWithPriority(0, 1, 0);
        long memory = over.memory().memAlloc(0, BYTES);
        MemorySegment word = over.memory().memHostAlloc(0, BYTES, 0);
        word.set(ValueLayout.JAVA_INT, 8, holds);
        over.transfers().memsetD8Async(0, memory, (byte) 1, BYTES, first);
        over.streams().streamWaitValue32(0, second, word.address() + 8, value, flags);
        long event = over.events().eventCreate(0, 2);
        over.events().eventRecord(0, event, second);
        over.streams().streamWaitEvent(0, third, event);
        over.transfers().memsetD8Async(0, memory, (byte) 2, BYTES, third);
        if (!isRight) {
          word.set(ValueLayout.JAVA_INT, 8, opens);
        }
        over.streams().streamSynchronize(0, first);
        word.set(ValueLayout.JAVA_INT, 8, opens);
        over.streams().streamSynchronize(0, third);
      }
      if (isRight) {
        assertSilent();
      } else {
        assertOnly(Misuse.RACE);
      }
    }
  }

  @Test
  void functionOfTheHost_holdsItsStream_untilItReturns() {
    CountDownLatch go = new CountDownLatch(1);
    long memory = driver.memory().memAlloc(0, BYTES);
    fill(memory, BYTES, stream);
    driver.streams().launchHostFunc(0, other.handle(), () -> await(go));
    fill(memory, BYTES, other);
    driver.streams().streamSynchronize(0, stream.handle());
    go.countDown();
    driver.streams().streamSynchronize(0, other.handle());
    driver.memory().memFree(0, memory);
    assertSilent();
  }
}

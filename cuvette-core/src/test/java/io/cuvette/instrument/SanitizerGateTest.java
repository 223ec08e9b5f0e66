package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.CudaStream;
import io.cuvette.Latches;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Streams that the host lets go on: what it knows by then comes before what is behind. */
@Timeout(60)
class SanitizerGateTest extends SanitizedCudaTestBase {
  private static final int BYTES = 4096;

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
      CompletableFuture<Void> callback = other.addCallback(() -> Latches.await(go));
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
      CompletableFuture<Void> callback = other.addCallback(() -> Latches.await(go));
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
      CompletableFuture<Void> callback = other.addCallback(() -> Latches.await(go));
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

  /** Of two gates of a stream the one before the work counts. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void workBehindOneGateOfTwo_isARaceAtOnce_ifThatIsOpen(boolean isBehindFirst) {
    MemorySegment words = driver.memory().memHostAlloc(0, BYTES, 0);
    words.set(ValueLayout.JAVA_LONG, 0, 0);
    long memory = driver.memory().memAlloc(0, BYTES);
    CudaStream third = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    long event = driver.events().eventCreate(0, 2);
    fill(memory, BYTES, stream);
    driver.streams().streamWaitValue32(0, other.handle(), words.address(), 1, 1);
    if (isBehindFirst) {
      driver.events().eventRecord(0, event, other.handle());
    }
    driver.streams().streamWaitValue32(0, other.handle(), words.address() + 4, 1, 1);
    if (!isBehindFirst) {
      driver.events().eventRecord(0, event, other.handle());
    }
    driver.streams().streamWaitEvent(0, third.handle(), event);
    words.set(ValueLayout.JAVA_INT, 0, 1);
    fill(memory, BYTES, third);
    if (isBehindFirst) {
      assertOnly(Misuse.RACE);
    }
    driver.streams().streamSynchronize(0, stream.handle());
    words.set(ValueLayout.JAVA_INT, 4, 1);
    driver.devices().ctxSynchronize(0);
    driver.events().eventDestroy(0, event);
    driver.memory().memFree(0, memory);
    driver.memory().memFreeHost(0, words.address());
    third.close();
    assertSilent();
  }

  /** A stream is at its first gate, whatever is behind that. */
  @Test
  void gateThatIsOpenBehindAClosedOne_letsNobodyThrough() {
    MemorySegment words = driver.memory().memHostAlloc(0, BYTES, 0);
    words.set(ValueLayout.JAVA_LONG, 0, 0);
    long memory = driver.memory().memAlloc(0, BYTES);
    fill(memory, BYTES, stream);
    for (int at = 0; at < 8; at += 4) {
      driver.streams().streamWaitValue32(0, other.handle(), words.address() + at, 1, 1);
      long event = driver.events().eventCreate(0, 2);
      driver.events().eventRecord(0, event, other.handle());
      driver.events().eventDestroy(0, event);
    }
    fill(memory, BYTES, other);
    words.set(ValueLayout.JAVA_INT, 4, 1);
    driver.streams().streamSynchronize(0, stream.handle());
    words.set(ValueLayout.JAVA_INT, 0, 1);
    ((SanitizerDriver) driver).delegate().streams().streamSynchronize(0, other.handle());
    words.set(ValueLayout.JAVA_INT, 0, 0); // nobody has seen it open
    driver.streams().streamSynchronize(0, other.handle());
    fill(memory, BYTES, stream);
    fill(memory, BYTES, other);
    assertOnly(Misuse.RACE);
    driver.devices().ctxSynchronize(0);
    driver.memory().memFree(0, memory);
    driver.memory().memFreeHost(0, words.address());
  }

  @Test
  void functionOfTheHost_holdsItsStream_untilItReturns() {
    CountDownLatch go = new CountDownLatch(1);
    long memory = driver.memory().memAlloc(0, BYTES);
    fill(memory, BYTES, stream);
    driver.streams().launchHostFunc(0, other.handle(), () -> Latches.await(go));
    fill(memory, BYTES, other);
    driver.streams().streamSynchronize(0, stream.handle());
    go.countDown();
    driver.streams().streamSynchronize(0, other.handle());
    driver.memory().memFree(0, memory);
    assertSilent();
  }
}

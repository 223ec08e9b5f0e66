package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.Latches;
import io.cuvette.LaunchConfig;
import io.cuvette.PinnedBuffer;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.sim.SimulatedKernels;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.sim.SimulatedParameter;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
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
  void freeInStreamOrderBehindACallback_comesAfterWhatOthersWaitedFor() {
    CountDownLatch go = new CountDownLatch(1);
    CudaDriver driver = cuda.driver();
    long memory = driver.ordered().memAllocAsync(0, BYTES, stream.handle());
    driver.transfers().memsetD8Async(0, memory, (byte) 1, BYTES, stream.handle());
    CompletableFuture<Void> callback = other.addCallback(() -> Latches.await(go));
    driver.ordered().memFreeAsync(0, memory, other.handle());
    stream.synchronize();
    go.countDown();
    callback.join();
    other.synchronize();
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

  /** A callback would tell, when it begins, that what is before it is done. */
  @Test
  void workOfOtherStreams_andBeforeTheWaitForAWord_isARaceAtOnce() {
    MemorySegment word = driver.memory().memHostAlloc(0, BYTES, 0);
    word.fill((byte) 0);
    try (Buffer buffer = cuda.allocate(BYTES, stream)) {
      buffer.fill((byte) 1, other);
      driver.streams().streamWaitValue32(0, other.handle(), word.address(), 1, 1);
      buffer.fill((byte) 2, stream);
      word.set(ValueLayout.JAVA_INT, 0, 1);
      assertOnly(Misuse.RACE);
      cuda.device(0).synchronize();
    }
    driver.memory().memFreeHost(0, word.address());
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

  /** One function that lets others write first what the copy behind it takes to the host. */
  @Test
  void copyToTheHostBehindAFunction_takesWhatIsWrittenUntilThatReturns() {
    CountDownLatch go = new CountDownLatch(1);
    long memory = driver.memory().memAlloc(0, BYTES);
    MemorySegment target = driver.memory().memHostAlloc(0, BYTES, 0);
    driver.streams().launchHostFunc(0, other.handle(), () -> Latches.await(go));
    driver.transfers().memcpyDtoHAsync(0, target, memory, other.handle());
    fill(memory, BYTES, stream);
    driver.streams().streamSynchronize(0, stream.handle());
    go.countDown();
    driver.streams().streamSynchronize(0, other.handle());
    driver.memory().memFree(0, memory);
    driver.memory().memFreeHost(0, target.address());
    assertSilent();
  }

  /** What is behind the gate does not stand in for what the stream did before. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void workBeforeAGate_isARaceAtOnce_alsoIfTheSameIsBehindIt(boolean isRead) {
    MemorySegment word = driver.memory().memHostAlloc(0, BYTES, 0);
    word.fill((byte) 0);
    long memory = driver.memory().memAlloc(0, BYTES);
    long target = driver.memory().memAlloc(0, BYTES);
    fill(memory, BYTES, other);
    other.synchronize();
    for (int i = 0; i < 2; i++) {
      if (isRead) {
        driver.transfers().memcpyAsync(0, target, memory, BYTES, other.handle());
      } else {
        fill(memory, BYTES, other);
      }
      if (i == 0) {
        driver.streams().streamWaitValue32(0, other.handle(), word.address(), 1, 1);
      }
    }
    fill(memory, BYTES, stream);
    word.set(ValueLayout.JAVA_INT, 0, 1);
    assertOnly(Misuse.RACE);
    driver.devices().ctxSynchronize(0);
    reports.clear(); // beside what is behind the gate, too
    driver.memory().memFree(0, memory);
    driver.memory().memFree(0, target);
    driver.memory().memFreeHost(0, word.address());
  }

  /** The word is no longer what the stream has waited for. */
  @Test
  void streamThatWasWaitedFor_isPastItsGates() {
    MemorySegment word = driver.memory().memHostAlloc(0, BYTES, 0);
    word.fill((byte) 0);
    long memory = driver.memory().memAlloc(0, BYTES);
    driver.streams().streamWaitValue32(0, other.handle(), word.address(), 1, 1);
    word.set(ValueLayout.JAVA_INT, 0, 1);
    ((SanitizerDriver) driver).delegate().streams().streamSynchronize(0, other.handle());
    word.set(ValueLayout.JAVA_INT, 0, 0); // nobody has seen it open
    driver.streams().streamSynchronize(0, other.handle());
    fill(memory, BYTES, stream);
    fill(memory, BYTES, other);
    word.set(ValueLayout.JAVA_INT, 0, 1);
    assertOnly(Misuse.RACE);
    driver.devices().ctxSynchronize(0);
    driver.memory().memFree(0, memory);
    driver.memory().memFreeHost(0, word.address());
  }

  /** Copies in the stream that is held and behind it. */
  @Test
  void hostInACallback_changesAndReads_whatWorkBehindItUses() {
    CountDownLatch queued = new CountDownLatch(1);
    try (PinnedBuffer in = cuda.allocatePinned(BYTES);
        PinnedBuffer out = cuda.allocatePinned(BYTES);
        Buffer one = cuda.allocate(BYTES, stream);
        Buffer two = cuda.allocate(BYTES, stream)) {
      in.segment().fill((byte) 1);
      two.fill((byte) 2, stream);
      out.copyFrom(two, stream);
      CompletableFuture<Void> callback =
          stream.addCallback(() -> {
            Latches.await(queued);
            in.copyFrom(MemorySegment.ofArray(new byte[BYTES]));
            out.copyTo(MemorySegment.ofArray(new byte[BYTES]));
          });
      one.copyFrom(in, stream);
      other.waitFor(stream);
      two.copyFrom(in, other);
      out.copyFrom(two, other);
      queued.countDown();
      callback.join();
      other.synchronize();
    }
    assertSilent();
  }

  /** A copy in a stream of the library's, which the callback waits for. */
  @Test
  void copyInACallback_comesBeforeWorkBehindIt() {
    CountDownLatch queued = new CountDownLatch(1);
    try (Buffer buffer = cuda.allocate(BYTES, stream)) {
      buffer.fill((byte) 1, stream);
      CompletableFuture<Void> callback =
          stream.addCallback(() -> {
            Latches.await(queued);
            buffer.copyTo(MemorySegment.ofArray(new byte[BYTES]));
          });
      buffer.fill((byte) 2, stream);
      queued.countDown();
      callback.join();
      stream.synchronize();
    }
    assertSilent();
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void workBesideOneThatIsHeld_isARace_ifItIsNotKnownToBeDoneBefore(boolean isWaitedFor) {
    MemorySegment word = driver.memory().memHostAlloc(0, BYTES, 0);
    word.fill((byte) 0);
    long memory = driver.memory().memAlloc(0, BYTES);
    driver.streams().streamWaitValue32(0, stream.handle(), word.address(), 1, 1);
    fill(memory, BYTES, stream);
    fill(memory, BYTES, other);
    if (isWaitedFor) {
      other.synchronize();
    }
    word.set(ValueLayout.JAVA_INT, 0, 1);
    stream.synchronize();
    if (!isWaitedFor) {
      SanitizerReport report = assertOnly(Misuse.RACE);
      assertThat(report.message()).contains("the write of 4096 bytes").contains(" is not ordered");
    }
    other.synchronize();
    driver.memory().memFree(0, memory);
    driver.memory().memFreeHost(0, word.address());
    assertSilent();
  }

  /** Of three copies in one stream, before and behind a word, and when that is written. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2})
  void hostThatChangesWhatACopyReads_isEarlyEnough_whileTheCopyIsHeld(int changed) {
    MemorySegment word = driver.memory().memHostAlloc(0, BYTES, 0);
    word.fill((byte) 0);
    try (PinnedBuffer in = cuda.allocatePinned(3 * BYTES);
        Buffer target = cuda.allocate(3 * BYTES, stream)) {
      in.segment().fill((byte) 1);
      for (int i = 0; i < 3; i++) {
        target.slice(i * BYTES, BYTES).copyFrom(in.slice(i * BYTES, BYTES), stream);
        if (i == 0) {
          driver.streams().streamWaitValue32(0, stream.handle(), word.address(), 1, 1);
        }
      }
      PinnedBuffer part = in.slice(changed * BYTES, BYTES);
      if (changed == 2) {
        word.set(ValueLayout.JAVA_INT, 0, 1);
      }
      part.copyFrom(MemorySegment.ofArray(new byte[BYTES]));
      word.set(ValueLayout.JAVA_INT, 0, 1);
      if (changed != 1) {
        assertOnly(Misuse.HOST_RACE);
      }
      stream.synchronize();
      reports.removeIf(report -> changed != 1); // found by the bytes as well
    }
    driver.memory().memFreeHost(0, word.address());
    assertSilent();
  }

  /** What a kernel has touched is known when it is done. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void readOfWhatAKernelChanges_isEarlyEnough_whileTheKernelIsHeld(boolean isHeld) {
    SimulatedKernel kernel =
        SimulatedKernel.of(
            "setBehindAGate",
            thread -> thread.setInt(thread.pointer(0), 1),
            SimulatedParameter.POINTER);
    SimulatedKernels.register(kernel);
    MemorySegment word = driver.memory().memHostAlloc(0, BYTES, 0);
    word.fill((byte) 0);
    try (CudaModule module = CudaModule.load(cuda, SimulatedKernels.ptx(List.of(kernel)));
        PinnedBuffer memory = cuda.allocatePinned(BYTES);
        Buffer copy = cuda.allocate(BYTES, other)) {
      memory.segment().fill((byte) 0);
      CudaKernel set = module.kernel(kernel.name());
      assertThat(set.parameters()).isPresent(); // loaded
      driver.streams().streamWaitValue32(0, stream.handle(), word.address(), 1, 1);
      stream.launch(set, LaunchConfig.of(1, 1), memory);
      if (!isHeld) {
        word.set(ValueLayout.JAVA_INT, 0, 1);
      }
      memory.copyTo(MemorySegment.ofArray(new byte[BYTES]));
      copy.copyFrom(memory, other);
      other.synchronize();
      word.set(ValueLayout.JAVA_INT, 0, 1);
      stream.synchronize();
      if (!isHeld) {
        assertThat(reports)
            .extracting(SanitizerReport::misuse)
            .containsExactlyInAnyOrder(Misuse.HOST_RACE, Misuse.RACE);
        reports.clear();
      }
    }
    driver.memory().memFreeHost(0, word.address());
    assertSilent();
  }
}

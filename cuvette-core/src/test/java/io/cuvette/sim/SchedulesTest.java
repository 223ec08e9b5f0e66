package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNoException;

import io.cuvette.sim.internal.queue.SimStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongPredicate;
import java.util.function.ToIntFunction;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Programs with planted bugs: for some of few seeds each gives a wrong result, and mended it never
 * does.
 */
@Timeout(60)
class SchedulesTest {
  private static final VarHandle WORD = ValueLayout.JAVA_BYTE.varHandle();
  private static final int FEW = 20;
  private static final int MANY = 100;
  private static final long BYTES = 4096;
  private static final long LARGE = 1L << 20;

  private static long wrong(int seeds, ToIntFunction<SimulatedDriver> program, int right) {
    LongPredicate isWrong =
        seed -> {
          try (SimulatedDriver driver =
              Attended.only(open(SimulatedOptions.DEFAULTS.withSeed(seed)))) {
            return program.applyAsInt(driver) != right;
          }
        };
    return LongStream.rangeClosed(1, seeds).filter(isWrong).count();
  }

  private static SimulatedDriver open(SimulatedOptions options) {
    return SimulatedDriver.open(options.withMemoryBytes(64L << 20));
  }

  private static long stream(SimulatedDriver driver) {
    return driver.streams().streamCreateWithPriority(0, SimStream.NON_BLOCKING, 0);
  }

  private static int first(SimulatedDriver driver, long memory) {
    MemorySegment host = driver.memory().memHostAlloc(0, 1, 0);
    driver.devices().ctxSynchronize(0);
    driver.transfers().memcpyDtoHAsync(0, host, memory, 0);
    driver.streams().streamSynchronize(0, 0);
    return host.get(ValueLayout.JAVA_BYTE, 0);
  }

  private static int fillsPinnedMemory(SimulatedDriver driver, boolean late) {
    long stream = stream(driver);
    long memory = driver.memory().memAlloc(0, BYTES);
    MemorySegment pinned = driver.memory().memHostAlloc(0, BYTES, 0);
    pinned.fill((byte) (late ? 1 : 2));
    driver.transfers().memcpyHtoDAsync(0, memory, pinned, stream);
    pinned.fill((byte) 2);
    return first(driver, memory);
  }

  @Test
  void pinnedMemoryFilledAfterItsCopyWasQueued_isFound() {
    assertThat(wrong(FEW, driver -> fillsPinnedMemory(driver, true), 2)).isBetween(5L, FEW - 5L);
    assertThat(wrong(MANY, driver -> fillsPinnedMemory(driver, false), 2)).isZero();
  }

  private static int fillsBehindAFunction(SimulatedDriver driver, boolean late, boolean word) {
    long stream = stream(driver);
    long memory = driver.memory().memAlloc(0, BYTES);
    MemorySegment pinned = driver.memory().memHostAlloc(0, BYTES, 0).fill((byte) (late ? 1 : 2));
    MemorySegment gate = driver.memory().memHostAlloc(0, Integer.BYTES, 0).fill((byte) 0);
    driver.streams().launchHostFunc(0, stream, () -> gate.fill((byte) 1));
    if (word) { // as a callback of the library, which returns on another thread
      driver.streams().streamWaitValue32(0, stream, gate.address(), 1, 0);
    }
    driver.transfers().memcpyHtoDAsync(0, memory, pinned, stream);
    pinned.fill((byte) 2);
    return first(driver, memory);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void pinnedMemoryFilledAfterItsCopyWasQueuedBehindAFunction_isFound(boolean word) {
    assertThat(wrong(MANY, driver -> fillsBehindAFunction(driver, true, word), 2)).isPositive();
    assertThat(wrong(FEW, driver -> fillsBehindAFunction(driver, false, word), 2)).isZero();
  }

  private static int reusesPinnedMemory(SimulatedDriver driver, boolean waits) {
    long stream = stream(driver);
    long memory = driver.memory().memAlloc(0, BYTES);
    MemorySegment pinned = driver.memory().memHostAlloc(0, BYTES, 0);
    pinned.fill((byte) 1);
    driver.transfers().memcpyHtoDAsync(0, memory, pinned, stream);
    if (waits) {
      driver.streams().streamSynchronize(0, stream);
    }
    pinned.fill((byte) 2);
    return first(driver, memory);
  }

  @Test
  void pinnedMemoryReusedTooEarly_isFound() {
    assertThat(wrong(FEW, driver -> reusesPinnedMemory(driver, false), 1)).isBetween(5L, FEW - 5L);
    assertThat(wrong(MANY, driver -> reusesPinnedMemory(driver, true), 1)).isZero();
  }

  private static int readsOnTheHost(SimulatedDriver driver, boolean waits) {
    long stream = stream(driver);
    long memory = driver.memory().memAlloc(0, BYTES);
    MemorySegment pinned = driver.memory().memHostAlloc(0, BYTES, 0);
    driver.transfers().memsetD8Async(0, memory, (byte) 3, BYTES, stream);
    driver.transfers().memcpyDtoHAsync(0, pinned, memory, stream);
    if (waits) {
      driver.streams().streamSynchronize(0, stream);
    }
    return pinned.get(ValueLayout.JAVA_BYTE, BYTES - 1);
  }

  @Test
  void hostThatReadsBeforeItWaits_isFound() {
    assertThat(wrong(FEW, driver -> readsOnTheHost(driver, false), 3)).isBetween(5L, FEW - 5L);
    assertThat(wrong(MANY, driver -> readsOnTheHost(driver, true), 3)).isZero();
  }

  /** The reader needs what is behind a number of operations of the writer. */
  private static int readsBehind(SimulatedDriver driver, int operations, boolean waits) {
    long writer = stream(driver);
    long reader = stream(driver);
    long memory = driver.memory().memAlloc(0, BYTES);
    long read = driver.memory().memAlloc(0, BYTES);
    long event = driver.events().eventCreate(0, 2);
    for (int i = 1; i <= operations; i++) {
      driver.transfers().memsetD8Async(0, memory, (byte) i, BYTES, writer);
    }
    driver.events().eventRecord(0, event, writer);
    if (waits) {
      driver.streams().streamWaitEvent(0, reader, event);
    }
    driver.transfers().memcpyAsync(0, read, memory, BYTES, reader);
    return first(driver, read);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 4, 8, 16, 32})
  void missingWaitBehindOperations_isFound(int operations) {
    assertThat(wrong(FEW, driver -> readsBehind(driver, operations, false), operations))
        .isGreaterThanOrEqualTo(2);
    assertThat(wrong(MANY, driver -> readsBehind(driver, operations, true), operations)).isZero();
  }

  /** The other way around: the writer is behind more operations than the reader, who comes late. */
  private static int overwritesTooEarly(SimulatedDriver driver, int operations, boolean waits) {
    long reader = stream(driver);
    long writer = stream(driver);
    long memory = driver.memory().memAlloc(0, BYTES);
    long read = driver.memory().memAlloc(0, BYTES);
    long event = driver.events().eventCreate(0, 2);
    driver.transfers().memsetD8Async(0, memory, (byte) 1, BYTES, reader);
    driver.events().eventRecord(0, event, reader);
    driver.streams().streamWaitEvent(0, writer, event);
    for (int i = 0; i < operations; i++) {
      driver.transfers().memsetD8Async(0, read, (byte) 5, 1, reader);
    }
    driver.transfers().memcpyAsync(0, read, memory, BYTES, reader);
    if (waits) {
      driver.events().eventRecord(0, event, reader);
      driver.streams().streamWaitEvent(0, writer, event);
    }
    driver.transfers().memsetD8Async(0, memory, (byte) 2, BYTES, writer);
    return first(driver, read);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 16, 32})
  void memoryOverwrittenTooEarly_isFound(int operations) {
    assertThat(wrong(FEW, driver -> overwritesTooEarly(driver, operations, false), 1)).isPositive();
    assertThat(wrong(MANY, driver -> overwritesTooEarly(driver, operations, true), 1)).isZero();
  }

  /** The call returns once the memory was read, but not once the device has it. */
  private static int copiesPageableMemory(SimulatedDriver driver, boolean waits) {
    long stream = stream(driver);
    long other = stream(driver);
    long event = driver.events().eventCreate(0, 2);
    long memory = driver.memory().memAlloc(0, LARGE);
    long read = driver.memory().memAlloc(0, LARGE);
    driver.transfers().memsetD8Async(0, memory, (byte) 0, LARGE, stream);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment pageable = arena.allocate(LARGE).fill((byte) 4);
      driver.transfers().memcpyHtoDAsync(0, memory, pageable, stream);
      pageable.fill((byte) 9);
    }
    driver.events().eventRecord(0, event, stream);
    if (waits) {
      driver.streams().streamWaitEvent(0, other, event);
    }
    driver.transfers().memcpyAsync(0, read, memory, LARGE, other);
    return first(driver, read);
  }

  @Test
  void largePageableCopy_isInFlightWhenTheCallReturns() {
    assertThat(wrong(FEW, driver -> copiesPageableMemory(driver, false), 4)).isPositive();
    assertThat(wrong(MANY, driver -> copiesPageableMemory(driver, true), 4)).isZero();
  }

  @Test
  void largePageableCopyFromTheDevice_isDoneWhenTheCallReturns() {
    assertThat(
            wrong(
                FEW,
                driver -> {
                  long memory = driver.memory().memAlloc(0, LARGE);
                  long stream = stream(driver);
                  driver.transfers().memsetD8Async(0, memory, (byte) 7, LARGE, stream);
                  try (Arena arena = Arena.ofConfined()) {
                    MemorySegment pageable = arena.allocate(LARGE);
                    driver.transfers().memcpyDtoHAsync(0, pageable, memory, stream);
                    return pageable.get(ValueLayout.JAVA_BYTE, LARGE - 1);
                  }
                },
                7))
        .isZero();
  }

  private static List<Boolean> answers(SimulatedOptions options, int queries) {
    try (SimulatedDriver driver = Attended.only(open(options))) {
      long stream = stream(driver);
      long memory = driver.memory().memAlloc(0, BYTES);
      driver.transfers().memsetD8Async(0, memory, (byte) 1, BYTES, stream);
      driver.transfers().memsetD8Async(0, memory, (byte) 2, BYTES, stream);
      List<Boolean> answers = new ArrayList<>();
      for (int i = 0; i < queries; i++) {
        answers.add(driver.streams().streamQuery(0, stream));
      }
      return answers;
    }
  }

  @ParameterizedTest
  @EnumSource(SimulatedPace.class)
  void program_thatOnlyAsks_seesAnEnd_andTheSameForTheSameSeed(SimulatedPace pace) {
    for (long seed = 1; seed <= FEW; seed++) {
      SimulatedOptions options = SimulatedOptions.DEFAULTS.withSeed(seed).withPace(pace);
      List<Boolean> answers = answers(options, 1000);
      assertThat(answers).as("seed %d", seed).endsWith(true).isEqualTo(answers(options, 1000));
      assertThat(answers.stream().dropWhile(done -> !done)).doesNotContain(false);
    }
  }

  @Test
  void query_runsNothing() {
    SimulatedOptions lazy = SimulatedOptions.DEFAULTS.withPace(SimulatedPace.LAZY);
    SimulatedOptions eager = SimulatedOptions.DEFAULTS.withPace(SimulatedPace.EAGER);
    assertThat(answers(lazy, 2)).containsExactly(false, false);
    assertThat(answers(eager, 2)).containsExactly(true, true);
  }

  /** Without a call of the driver: only the thread of the simulator can end this. */
  @ParameterizedTest
  @EnumSource(SimulatedPace.class)
  void program_thatSpinsAtMemory_seesAnEnd(SimulatedPace pace) {
    try (SimulatedDriver driver = open(SimulatedOptions.DEFAULTS.withPace(pace))) {
      long stream = stream(driver);
      MemorySegment pinned = driver.memory().memHostAlloc(0, Integer.BYTES, 0);
      for (int round = 1; round <= 10; round++) {
        driver.transfers().memsetD8Async(0, pinned.address(), (byte) round, Integer.BYTES, stream);
        while ((byte) WORD.getVolatile(pinned, 0L) != round) {
          Thread.onSpinWait();
        }
      }
    }
  }

  /** Work behind a host function and a word that are over only after the last call. */
  private static long nanosUntilWorkBehindAFunction(SimulatedOptions options) {
    try (SimulatedDriver driver = open(options)) {
      long stream = stream(driver);
      CountDownLatch last = new CountDownLatch(1);
      MemorySegment pinned = driver.memory().memHostAlloc(0, 2 * Integer.BYTES, 0).fill((byte) 0);
      driver
          .streams()
          .launchHostFunc(0, stream, () -> assertThatNoException().isThrownBy(last::await));
      driver.streams().streamWaitValue32(0, stream, pinned.address() + Integer.BYTES, 1, 0);
      driver.transfers().memsetD8Async(0, pinned.address(), (byte) 1, 1, stream);
      long start = System.nanoTime();
      pinned.set(ValueLayout.JAVA_INT, Integer.BYTES, 1);
      last.countDown();
      while ((byte) WORD.getVolatile(pinned, 0L) != 1) {
        assertThat(Thread.currentThread().isInterrupted()).as("too late").isFalse();
      }
      return System.nanoTime() - start;
    }
  }

  @ParameterizedTest
  @EnumSource(SimulatedPace.class)
  void program_thatSpinsAtMemoryBehindAHostFunction_seesAnEnd(SimulatedPace pace) {
    SimulatedOptions options = SimulatedOptions.DEFAULTS.withPace(pace);
    assertThat(nanosUntilWorkBehindAFunction(options)).isPositive();
  }

  /**
   * As an idle GPU does; else memory that is filled after its copy was queued is filled in time.
   */
  @Test
  void workBehindAHostFunction_goesOnSoon_ifWorkRunsAtOnce() {
    SimulatedOptions eager = SimulatedOptions.DEFAULTS.withPace(SimulatedPace.EAGER);
    // More than one round, since a busy computer may take its time.
    assertThat(
            IntStream.range(0, FEW)
                .mapToLong(_ -> nanosUntilWorkBehindAFunction(eager))
                .anyMatch(nanos -> nanos < TimeUnit.MILLISECONDS.toNanos(50)))
        .isTrue();
  }

  /** Calls that ask for no work let time pass too, if there are many. */
  @Test
  void program_thatSpinsAtAnotherCall_seesAnEnd() {
    try (SimulatedDriver driver = open(SimulatedOptions.DEFAULTS.withPace(SimulatedPace.LAZY))) {
      long stream = stream(driver);
      MemorySegment pinned = driver.memory().memHostAlloc(0, Integer.BYTES, 0);
      driver.transfers().memsetD8Async(0, pinned.address(), (byte) 1, Integer.BYTES, stream);
      while ((byte) WORD.getVolatile(pinned, 0L) != 1) {
        assertThat(driver.devices().memGetInfo(0).totalBytes()).isPositive();
      }
    }
  }

  @Test
  void hostFunction_holdsItsStream_forEachPaceAndOrder() {
    ToIntFunction<SimulatedDriver> program =
        driver -> {
          long stream = stream(driver);
          MemorySegment pinned = driver.memory().memHostAlloc(0, 1, 0);
          long memory = driver.memory().memAlloc(0, 1);
          driver.streams().launchHostFunc(0, stream, () -> pinned.fill((byte) 6));
          driver.transfers().memcpyHtoDAsync(0, memory, pinned, stream);
          return first(driver, memory);
        };
    assertThat(wrong(FEW, program, 6)).isZero();
  }

  /** The first writes what the second reads, in another stream. */
  private static int callsHostFunctions(SimulatedDriver driver, int operations, boolean waits) {
    long writer = stream(driver);
    long reader = stream(driver);
    long memory = driver.memory().memAlloc(0, BYTES);
    long event = driver.events().eventCreate(0, 2);
    AtomicInteger written = new AtomicInteger();
    AtomicInteger read = new AtomicInteger();
    for (int i = 0; i < operations; i++) {
      driver.transfers().memsetD8Async(0, memory, (byte) i, 1, writer);
      driver.transfers().memsetD8Async(0, memory + 1, (byte) i, 1, reader);
    }
    driver.streams().launchHostFunc(0, writer, () -> written.set(7));
    driver.events().eventRecord(0, event, writer);
    if (waits) {
      driver.streams().streamWaitEvent(0, reader, event);
    }
    driver.streams().launchHostFunc(0, reader, () -> read.set(written.get()));
    driver.devices().ctxSynchronize(0);
    return read.get();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 16, 32})
  void hostFunctionsOfTwoStreams_runInEitherOrder(int operations) {
    assertThat(wrong(MANY, driver -> callsHostFunctions(driver, operations, false), 7))
        .isBetween(5L, MANY - 5L);
    assertThat(wrong(FEW, driver -> callsHostFunctions(driver, operations, true), 7)).isZero();
  }

  /** Of streams that take turns, one with a short function is not passed over for it. */
  @Test
  void streamWithAHostFunction_hasItsTurns() {
    SimulatedOptions turns =
        SimulatedOptions.DEFAULTS.withPace(SimulatedPace.LAZY).withOrder(SimulatedOrder.FAIR);
    int inTurn = 0;
    // More than one round, since a busy computer may take its time to run the function.
    for (int round = 0; round < FEW && inTurn == 0; round++) {
      try (SimulatedDriver driver = open(turns)) {
        long one = stream(driver);
        long other = stream(driver);
        long memory = driver.memory().memAlloc(0, BYTES);
        driver.streams().launchHostFunc(0, one, () -> {});
        driver.transfers().memsetD8Async(0, memory, (byte) 1, 1, one);
        driver.transfers().memsetD8Async(0, memory, (byte) 2, 1, other);
        driver.transfers().memsetD8Async(0, memory, (byte) 3, 1, other);
        driver.transfers().memsetD8Async(0, memory, (byte) 4, 1, other);
        inTurn += first(driver, memory) == 4 ? 1 : 0;
      }
    }
    assertThat(inTurn).isPositive();
  }

  @Test
  void thousandStreams_endForEachSeed() {
    ToIntFunction<SimulatedDriver> program =
        driver -> {
          long memory = driver.memory().memAlloc(0, BYTES);
          for (int i = 0; i < 1000; i++) {
            driver.transfers().memsetD8Async(0, memory + i, (byte) 1, 1, stream(driver));
          }
          driver.devices().ctxSynchronize(0);
          return first(driver, memory + 999);
        };
    assertThat(wrong(FEW, program, 1)).isZero();
  }
}

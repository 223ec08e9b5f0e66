package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Order: what a program orders happens so for every seed, and what it does not order is found. */
class StreamOrderTest {
  private static final int SEEDS = 60;
  private static final int BLOCKING = 0;
  private static final int NON_BLOCKING = 1;
  private static final long BYTES = 4096;

  /** A program with two streams of a device; gives a byte that the order decides. */
  @FunctionalInterface
  private interface Program {
    byte run(SimulatedDriver driver, long one, long other, long memory);
  }

  private static long wrongSeeds(int flags, byte right, Program program) {
    return LongStream.range(0, SEEDS).filter(seed -> result(seed, flags, program) != right).count();
  }

  private static byte result(long seed, int flags, Program program) {
    try (SimulatedDriver driver =
        Attended.only(SimulatedDriver.open(SimulatedOptions.DEFAULTS.withSeed(seed)))) {
      long memory = driver.memory().memAlloc(0, BYTES);
      long one = driver.streams().streamCreateWithPriority(0, flags, 0);
      long other = driver.streams().streamCreateWithPriority(0, flags, 0);
      return program.run(driver, one, other, memory);
    }
  }

  /** The first byte of memory once all work is done. */
  private static byte firstByte(SimulatedDriver driver, long memory) {
    driver.devices().ctxSynchronize(0);
    return readByte(driver, memory, 0);
  }

  private static byte readByte(SimulatedDriver driver, long memory, long stream) {
    MemorySegment host = driver.memory().memHostAlloc(0, 1, 0);
    driver.transfers().memcpyDtoHAsync(0, host, memory, stream);
    driver.streams().streamSynchronize(0, stream);
    return host.get(ValueLayout.JAVA_BYTE, 0);
  }

  @Test
  void operationsOfOneStream_runInOrder() {
    Program program =
        (driver, one, other, memory) -> {
          for (int i = 1; i <= 20; i++) {
            driver.transfers().memsetD8Async(0, memory, (byte) i, BYTES, one);
            driver.transfers().memsetD8Async(0, memory + BYTES / 2, (byte) i, 1, other);
          }
          return firstByte(driver, memory);
        };
    assertThat(wrongSeeds(NON_BLOCKING, (byte) 20, program)).isZero();
  }

  private static byte copyChain(
      SimulatedDriver driver, long one, long other, long memory, boolean waits) {
    long middle = driver.memory().memAlloc(0, BYTES);
    long last = driver.memory().memAlloc(0, BYTES);
    long event = driver.events().eventCreate(0, 2);
    driver.transfers().memsetD8Async(0, memory, (byte) 1, BYTES, one);
    driver.transfers().memsetD8Async(0, memory, (byte) 2, BYTES, one);
    driver.transfers().memcpyAsync(0, middle, memory, BYTES, one);
    driver.events().eventRecord(0, event, one);
    if (waits) {
      driver.streams().streamWaitEvent(0, other, event);
    }
    driver.transfers().memcpyAsync(0, last, middle, BYTES, other);
    driver.streams().streamSynchronize(0, other);
    return firstByte(driver, last);
  }

  @Test
  void orderedProgram_givesOneAnswerForAllSeeds() {
    assertThat(
            wrongSeeds(
                NON_BLOCKING,
                (byte) 2,
                (driver, one, other, memory) -> copyChain(driver, one, other, memory, true)))
        .isZero();
  }

  @Test
  void missingWait_givesWrongAnswerForSomeSeed_andRightForSomeOther() {
    assertThat(
            wrongSeeds(
                NON_BLOCKING,
                (byte) 2,
                (driver, one, other, memory) -> copyChain(driver, one, other, memory, false)))
        .isBetween(5L, SEEDS - 5L);
  }

  @Test
  void waitingStream_runsNothingBehindItsWait() {
    // The other stream waits for the second of two fills; its work behind the wait must see it.
    Program program =
        (driver, one, other, memory) -> {
          long copy = driver.memory().memAlloc(0, BYTES);
          long event = driver.events().eventCreate(0, 2);
          long third = driver.streams().streamCreateWithPriority(0, NON_BLOCKING, 0);
          for (int i = 1; i <= 10; i++) {
            driver.transfers().memsetD8Async(0, memory, (byte) i, BYTES, one);
            driver.events().eventRecord(0, event, one);
            driver.streams().streamWaitEvent(0, other, event);
            driver.transfers().memcpyAsync(0, copy, memory, BYTES, other);
            driver.events().eventRecord(0, event, other);
            driver.streams().streamWaitEvent(0, one, event);
            driver.transfers().memsetD8Async(0, copy + BYTES - 1, (byte) 0, 1, third);
          }
          driver.streams().streamSynchronize(0, other);
          return readByte(driver, copy, other);
        };
    assertThat(wrongSeeds(NON_BLOCKING, (byte) 10, program)).isZero();
  }

  @Test
  void eventRecordedAgain_doesNotChangeEarlierWaits() {
    Program program =
        (driver, one, other, memory) -> {
          long event = driver.events().eventCreate(0, 2);
          driver.transfers().memsetD8Async(0, memory, (byte) 1, BYTES, one);
          driver.events().eventRecord(0, event, one);
          driver.streams().streamWaitEvent(0, other, event);
          driver.events().eventRecord(0, event, other);
          driver.events().eventDestroy(0, event);
          driver.transfers().memsetD8Async(0, memory, (byte) 2, BYTES, other);
          return firstByte(driver, memory);
        };
    assertThat(wrongSeeds(NON_BLOCKING, (byte) 2, program)).isZero();
  }

  @Test
  void waitForEventOfAnotherDevice_orders() {
    long wrong =
        LongStream.range(0, SEEDS)
            .filter(seed -> {
              SimulatedOptions options = SimulatedOptions.DEFAULTS.withDevices(2).withSeed(seed);
              try (SimulatedDriver driver = SimulatedDriver.open(options)) {
                long one = driver.streams().streamCreateWithPriority(0, NON_BLOCKING, 0);
                long other = driver.streams().streamCreateWithPriority(1, NON_BLOCKING, 0);
                long source = driver.memory().memAlloc(0, BYTES);
                long target = driver.memory().memAlloc(1, BYTES);
                long event = driver.events().eventCreate(0, 2);
                driver.transfers().memsetD8Async(0, source, (byte) 7, BYTES, one);
                driver.events().eventRecord(0, event, one);
                driver.streams().streamWaitEvent(1, other, event);
                driver.transfers().memcpyPeerAsync(1, target, 1, source, 0, BYTES, other);
                driver.streams().streamSynchronize(1, other);
                return readByte(driver, target, 0) != 7;
              }
            })
            .count();
    assertThat(wrong).isZero();
  }

  @ParameterizedTest
  @ValueSource(longs = {0, 1})
  void legacyStream_waitsForBlockingStreams_andTheyForIt(long legacy) {
    Program program =
        (driver, one, other, memory) -> {
          driver.transfers().memsetD8Async(0, memory, (byte) 1, BYTES, one);
          driver.transfers().memsetD8Async(0, memory, (byte) 2, BYTES, legacy);
          driver.transfers().memsetD8Async(0, memory, (byte) 3, BYTES, other);
          driver.transfers().memsetD8Async(0, memory, (byte) 4, BYTES, legacy);
          driver.transfers().memsetD8Async(0, memory, (byte) 5, BYTES, one);
          driver.transfers().memsetD8Async(0, memory, (byte) 6, BYTES, legacy);
          return firstByte(driver, memory);
        };
    assertThat(wrongSeeds(BLOCKING, (byte) 6, program)).isZero();
    assertThat(wrongSeeds(NON_BLOCKING, (byte) 6, program)).isPositive();
  }

  @Test
  void blockingStream_waitsForTheLegacyStreamsWorkSoFar_eachTime() {
    Program program =
        (driver, one, other, memory) -> {
          long copy = driver.memory().memAlloc(0, BYTES);
          for (int i = 1; i <= 5; i++) {
            driver.transfers().memsetD8Async(0, memory, (byte) (i - 1), BYTES, 0);
            driver.transfers().memsetD8Async(0, memory, (byte) i, BYTES, 0);
            driver.transfers().memcpyAsync(0, copy, memory, BYTES, one);
            driver.transfers().memsetD8Async(0, memory + 1, (byte) 0, 1, other);
          }
          driver.streams().streamSynchronize(0, one);
          MemorySegment host = driver.memory().memHostAlloc(0, 1, 0);
          driver.transfers().memcpyDtoHAsync(0, host, copy, one);
          driver.streams().streamSynchronize(0, one);
          return host.get(ValueLayout.JAVA_BYTE, 0);
        };
    assertThat(wrongSeeds(BLOCKING, (byte) 5, program)).isZero();
    assertThat(wrongSeeds(NON_BLOCKING, (byte) 5, program)).isPositive();
  }

  @Test
  void synchronizingTheLegacyStream_waitsForBlockingStreamsOnly() {
    Program program =
        (driver, one, other, memory) -> {
          driver.transfers().memsetD8Async(0, memory, (byte) 9, BYTES, one);
          driver.streams().streamSynchronize(0, 0);
          return readByte(driver, memory, other);
        };
    assertThat(wrongSeeds(BLOCKING, (byte) 9, program)).isZero();
    assertThat(wrongSeeds(NON_BLOCKING, (byte) 9, program)).isPositive();
  }

  @Test
  void perThreadStream_isOneForEachThread_andBlocking() throws InterruptedException {
    try (SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
      long mine = driver.streams().streamGetId(0, 2);
      long[] theirs = new long[1];
      Thread.ofVirtual().start(() -> theirs[0] = driver.streams().streamGetId(0, 2)).join();
      assertThat(driver.streams().streamGetId(0, 2)).isEqualTo(mine);
      assertThat(theirs[0]).isNotEqualTo(mine);
      assertThat(driver.streams().streamGetFlags(0, 2)).isZero();
    }
  }

  @Test
  void destroyedStream_stillCompletesItsWork() {
    Program program =
        (driver, one, other, memory) -> {
          driver.transfers().memsetD8Async(0, memory, (byte) 8, BYTES, one);
          driver.streams().streamDestroy(0, one);
          return firstByte(driver, memory);
        };
    assertThat(wrongSeeds(NON_BLOCKING, (byte) 8, program)).isZero();
  }

  @Test
  void sameSeed_givesSameRun() {
    Program race =
        (driver, one, other, memory) -> {
          for (int i = 0; i < 50; i++) {
            driver.transfers().memsetD8Async(0, memory, (byte) i, 1, one);
            driver.transfers().memsetD8Async(0, memory, (byte) (100 + i), 1, other);
          }
          driver.streams().streamSynchronize(0, one);
          return readByte(driver, memory, one);
        };
    for (long seed = 0; seed < SEEDS; seed++) {
      assertThat(result(seed, NON_BLOCKING, race)).isEqualTo(result(seed, NON_BLOCKING, race));
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {0, 1, 2, 3, 4, 5, 6, 7})
  void functionOfTheLegacyStream_comesBehindBlockingStreams(long seed) {
    List<String> ran = new CopyOnWriteArrayList<>();
    try (SimulatedDriver driver =
        SimulatedDriver.open(SimulatedOptions.parse("queues=0,seed=" + seed))) {
      MemorySegment word = driver.memory().memHostAlloc(0, 4, 0);
      word.set(ValueLayout.JAVA_INT, 0, 0);
      long blocking = driver.streams().streamCreateWithPriority(0, BLOCKING, 0);
      long apart = driver.streams().streamCreateWithPriority(0, NON_BLOCKING, 0);
      driver.streams().streamWaitValue32(0, blocking, word.address(), 1, 1);
      driver.streams().launchHostFunc(0, 0, () -> ran.add("legacy"));
      driver.streams().launchHostFunc(0, apart, () -> ran.add("apart"));
      driver.streams().streamSynchronize(0, apart);
      assertThat(ran).containsExactly("apart");
      word.set(ValueLayout.JAVA_INT, 0, 1);
      driver.streams().streamSynchronize(0, 0);
      assertThat(ran).containsExactly("apart", "legacy");
    }
  }

  /** Who asks in vain sees an end some day; other calls after that are no questions. */
  @Test
  void lazyWork_isNotRunByCallsBehindAQuery() {
    for (int seed = 0; seed < SEEDS; seed += 8) {
      try (SimulatedDriver driver =
          Attended.only(
              SimulatedDriver.open(SimulatedOptions.parse("pace=lazy,queues=0,seed=" + seed)))) {
        MemorySegment host = driver.memory().memHostAlloc(0, 1, 0);
        for (int i = 1; i <= 40; i++) {
          driver.transfers().memsetD8Async(0, host.address(), (byte) i, 1, 0);
        }
        assertThat(driver.streams().streamQuery(0, 0)).isFalse();
        byte done = host.get(ValueLayout.JAVA_BYTE, 0);
        for (int i = 0; i < 40; i++) {
          int _ = driver.streams().streamGetPriority(0, 0);
        }
        assertThat(host.get(ValueLayout.JAVA_BYTE, 0)).as("seed %d", seed).isEqualTo(done);
      }
    }
  }

  /** No thread waits: the work before the function runs for it, through two other streams. */
  @Test
  void workBeforeAHostFunction_runsInItsOrder_alsoThroughAThirdStream() throws Exception {
    SimulatedOptions lazy = SimulatedOptions.parse("pace=lazy,queues=0");
    try (SimulatedDriver driver = Attended.only(SimulatedDriver.open(lazy))) {
      long memory = driver.memory().memAlloc(0, BYTES);
      MemorySegment host = driver.memory().memHostAlloc(0, 1, 0);
      long[] streams = new long[3];
      for (int i = 0; i < streams.length; i++) {
        streams[i] = driver.streams().streamCreateWithPriority(0, NON_BLOCKING, 0);
      }
      driver.transfers().memsetD8Async(0, memory, (byte) 1, BYTES, streams[0]);
      awaitOther(driver, streams[1], streams[0]);
      driver.transfers().memcpyDtoHAsync(0, host, memory, streams[1]);
      awaitOther(driver, streams[2], streams[1]);
      CompletableFuture<Byte> seen = new CompletableFuture<>();
      driver
          .streams()
          .launchHostFunc(0, streams[2], () -> seen.complete(host.get(ValueLayout.JAVA_BYTE, 0)));
      assertThat(seen.get(60, TimeUnit.SECONDS)).isEqualTo((byte) 1);
    }
  }

  private static void awaitOther(SimulatedDriver driver, long waiting, long recording) {
    long event = driver.events().eventCreate(0, 2);
    driver.events().eventRecord(0, event, recording);
    driver.streams().streamWaitEvent(0, waiting, event);
  }

  /** As on a GPU, the last 4 MiB of it, and not a byte less. */
  @Test
  void copyOfMuchPageableMemory_returnsWithItsEndInFlight() {
    int bytes = 8 << 20;
    MemorySegment source = Arena.ofAuto().allocate(bytes);
    source.fill((byte) 1);
    for (int from : new int[] {bytes / 2, bytes / 2 - 1}) {
      long old =
          LongStream.range(0, 24)
              .filter(seed -> {
                SimulatedOptions options = SimulatedOptions.DEFAULTS.withSeed(seed).withQueues(0);
                try (SimulatedDriver driver = Attended.only(SimulatedDriver.open(options))) {
                  long memory = driver.memory().memAlloc(0, bytes);
                  long one = driver.streams().streamCreateWithPriority(0, NON_BLOCKING, 0);
                  long other = driver.streams().streamCreateWithPriority(0, NON_BLOCKING, 0);
                  driver.transfers().memcpyHtoDAsync(0, memory, source, one);
                  return readByte(driver, memory + from, other) != 1;
                }
              })
              .count();
      if (from == bytes / 2) {
        assertThat(old).isPositive();
      } else {
        assertThat(old).isZero();
      }
    }
  }
}

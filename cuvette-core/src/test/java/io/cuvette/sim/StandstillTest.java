package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Latches;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Await;
import io.cuvette.sim.internal.queue.SimStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** When shared queues that hold work up count as standing still, and when not. */
@Timeout(60)
class StandstillTest {
  private static final int UNTIL_EQUAL = 1;
  private static final int LONG = 12_000;
  private static final int SHORT = 64;
  private static final int TRIES = 20;
  private static final int MIDDLE = 512;

  private final SimulatedDriver patient = open(LONG);
  private final SimulatedDriver hasty = open(SHORT);

  private static SimulatedDriver open(int patience) {
    return SimulatedDriver.open(
        SimulatedOptions.parse("queues=2,queuePatience=%d".formatted(patience)));
  }

  @AfterEach
  void close() {
    patient.close();
    hasty.close();
  }

  /** Holds a new stream, which has the second queue, until the word is 1. */
  private static MemorySegment hold(SimulatedDriver driver, long stream) {
    MemorySegment word = driver.memory().memHostAlloc(0, 4, 0);
    word.set(ValueLayout.JAVA_INT, 0, 0);
    driver.streams().streamWaitValue32(0, stream, word.address(), 1, UNTIL_EQUAL);
    return word;
  }

  private static long stream(SimulatedDriver driver) {
    return driver.streams().streamCreateWithPriority(0, SimStream.NON_BLOCKING, 0);
  }

  /** A program may wait as long as it likes for what only its own work is behind. */
  @Test
  void queueOfOneStream_mayStandForAnyTime() throws InterruptedException {
    long held = stream(hasty);
    MemorySegment word = hold(hasty, held);
    long memory = hasty.memory().memAlloc(0, 64);
    hasty.transfers().memsetD8Async(0, memory, (byte) 1, 64, held);
    Thread.sleep(3 * SHORT);
    assertThat(hasty.streams().streamQuery(0, held)).isFalse();
    word.set(ValueLayout.JAVA_INT, 0, 1);
    hasty.streams().streamSynchronize(0, held);
  }

  /** One that others are in may stand for less than the time that is set. */
  @Test
  void queueOfSeveralStreams_mayStandForAWhile() throws InterruptedException {
    long held = stream(patient);
    MemorySegment word = hold(patient, held);
    stream(patient);
    long behind = stream(patient);
    long memory = patient.memory().memAlloc(0, 64);
    patient.transfers().memsetD8Async(0, memory, (byte) 1, 64, behind);
    Thread.sleep(LONG / 16 * 2);
    assertThat(patient.streams().streamQuery(0, behind)).isFalse();
    word.set(ValueLayout.JAVA_INT, 0, 1);
    patient.streams().streamSynchronize(0, behind);
  }

  /** It is the program that has not asked for it yet. */
  @Test
  void workThatCanRun_mayStandForAnyTime() throws InterruptedException {
    try (SimulatedDriver lazy =
        SimulatedDriver.open(SimulatedOptions.parse("queues=1,pace=lazy,queuePatience=16"))) {
      long[] streams = {stream(lazy), stream(lazy)};
      long memory = lazy.memory().memAlloc(0, 64);
      for (long stream : streams) {
        lazy.transfers().memsetD8Async(0, memory, (byte) 1, 64, stream);
      }
      Thread.sleep(3 * SHORT);
      for (long stream : streams) {
        lazy.streams().streamSynchronize(0, stream);
      }
    }
  }

  @Test
  void queueOfSeveralStreams_thatStandsForLonger_failsItsDevice() {
    hold(hasty, stream(hasty));
    stream(hasty);
    long behind = stream(hasty);
    long memory = hasty.memory().memAlloc(0, 64);
    hasty.transfers().memsetD8Async(0, memory, (byte) 1, 64, behind);
    SimTestBase.assertFails(
        CudaStatus.LAUNCH_TIMEOUT,
        "nothing moved for 64 ms",
        () -> hasty.streams().streamSynchronize(0, behind));
  }

  /** The thread that waited for room has gone on: nobody waits for what comes after that. */
  @Test
  void queueThatWasFull_mayStandForAnyTime_onceItIsNot() throws InterruptedException {
    boolean wasFull = false;
    for (int i = 0; i < TRIES && !wasFull; i++) {
      wasFull = standsOnceItIsNotFull();
    }
    assertThat(wasFull).isTrue();
  }

  /** False if this thread was so late that the full queue stood for too long. */
  private static boolean standsOnceItIsNotFull() throws InterruptedException {
    AtomicReference<Throwable> late = new AtomicReference<>();
    SimulatedDriver small =
        SimulatedDriver.open(
            SimulatedOptions.parse("queues=2,queueLength=4,queuePatience=" + MIDDLE));
    try (small) {
      long held = stream(small);
      MemorySegment word = hold(small, held);
      long memory = small.memory().memAlloc(0, 64);
      Thread filling =
          Thread.ofPlatform()
              .uncaughtExceptionHandler((_, e) -> late.set(e))
              .start(() -> {
                for (int i = 0; i < 6; i++) {
                  small.transfers().memsetD8Async(0, memory, (byte) i, 64, held);
                }
              });
      Await.until(() -> filling.getState() == Thread.State.TIMED_WAITING || !filling.isAlive());
      word.set(ValueLayout.JAVA_INT, 0, 1);
      filling.join();
      if (late.get() != null) {
        assertThat(late.get()).hasMessageContaining("threads that wait for room in it: 1");
        return false;
      }
      small.streams().streamSynchronize(0, held);
      MemorySegment next = hold(small, held);
      Thread.sleep(MIDDLE / 4 * 5);
      assertThat(small.streams().streamQuery(0, held)).isFalse();
      next.set(ValueLayout.JAVA_INT, 0, 1);
      small.streams().streamSynchronize(0, held);
      return true;
    }
  }

  @Test
  void callThatWaitsForRoom_endsWithItsDriver() throws InterruptedException {
    SimulatedDriver narrow =
        SimulatedDriver.open(
            SimulatedOptions.parse("queues=1,queueLength=2,queuePatience=" + 10 * LONG));
    long memory = narrow.memory().memAlloc(0, 64);
    long only = stream(narrow);
    CountDownLatch over = new CountDownLatch(1);
    narrow.streams().launchHostFunc(0, only, () -> Latches.await(over));
    Thread waiting =
        Thread.ofPlatform()
            .daemon()
            .start(() -> {
              try {
                for (int i = 0; i < 8; i++) {
                  narrow.transfers().memsetD8Async(0, memory, (byte) i, 64, only);
                }
              } catch (CudaException e) {
                assertThat(e.status()).isEqualTo(CudaStatus.DEINITIALIZED);
              }
            });
    while (waiting.getState() != Thread.State.TIMED_WAITING) {
      Thread.onSpinWait();
    }
    narrow.close();
    waiting.join();
    over.countDown();
  }
}

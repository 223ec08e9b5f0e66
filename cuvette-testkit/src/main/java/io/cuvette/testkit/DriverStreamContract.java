package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PriorityRange;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;

/** What every driver promises about streams. Extend it in the tests of a driver. */
public abstract class DriverStreamContract {

  /** For subclasses. */
  protected DriverStreamContract() {}

  /**
   * A stream has the flags and the priority it was created with.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void stream_hasTheFlagsAndPriorityAskedFor(CudaDriver driver) {
    PriorityRange range = driver.devices().ctxGetStreamPriorityRange(0);
    for (int flags : new int[] {0, 1}) {
      for (int priority = range.greatest(); priority <= range.least(); priority++) {
        long stream = driver.streams().streamCreateWithPriority(0, flags, priority);
        assertThat(driver.streams().streamGetFlags(0, stream)).isEqualTo(flags);
        assertThat(driver.streams().streamGetPriority(0, stream)).isEqualTo(priority);
        assertThat(driver.streams().streamGetDevice(0, stream)).isZero();
        driver.streams().streamDestroy(0, stream);
      }
    }
    Refused.with(
        CudaStatus.INVALID_VALUE, () -> driver.streams().streamCreateWithPriority(0, 64, 0));
  }

  /**
   * Handles may come again, identities never.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void identities_areNeverUsedTwice(CudaDriver driver) {
    Set<Long> seen = new HashSet<>();
    for (int i = 0; i < 50; i++) {
      long stream = driver.streams().streamCreateWithPriority(0, 0, 0);
      assertThat(seen.add(driver.streams().streamGetId(0, stream))).isTrue();
      driver.streams().streamDestroy(0, stream);
    }
  }

  /**
   * Streams without work have completed.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void idleStreams_areDone(CudaDriver driver) {
    long stream = driver.streams().streamCreateWithPriority(0, 0, 0);
    for (long each : new long[] {0, 1, 2, stream}) {
      driver.streams().streamSynchronize(0, each);
      assertThat(driver.streams().streamQuery(0, each)).as("stream %d", each).isTrue();
      assertThat(driver.captures().streamIsCapturing(0, each)).isZero();
    }
    driver.streams().streamDestroy(0, stream);
  }

  /**
   * A stream that is held has not completed until it is released.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void heldStream_isNotDone_untilItIsLetGo(CudaDriver driver) {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    Gate gate = Gate.on(driver, 0, stream);
    assertThat(driver.streams().streamQuery(0, stream)).isFalse();
    gate.open();
    driver.streams().streamSynchronize(0, stream);
    assertThat(driver.streams().streamQuery(0, stream)).isTrue();
    driver.streams().streamDestroy(0, stream);
  }

  /**
   * Host functions run in order after the work before them.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void hostFunctions_runInOrder_afterTheWorkBeforeThem(CudaDriver driver) {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    List<Integer> seen = Collections.synchronizedList(new ArrayList<>());
    for (int i = 0; i < 20; i++) {
      int number = i;
      driver.streams().launchHostFunc(0, stream, () -> seen.add(number));
    }
    driver.streams().streamSynchronize(0, stream);
    assertThat(seen).hasSize(20).isSorted();
    driver.streams().streamDestroy(0, stream);
  }

  /**
   * A host function runs although no thread waits for the stream.
   *
   * @param driver the driver under test
   * @throws InterruptedException if the test is interrupted
   */
  @CudaTest
  public void hostFunction_comesEvenIfNobodyWaits(CudaDriver driver) throws InterruptedException {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    CountDownLatch reached = new CountDownLatch(1);
    driver.streams().launchHostFunc(0, stream, reached::countDown);
    reached.await();
    driver.streams().streamSynchronize(0, stream);
    driver.streams().streamDestroy(0, stream);
  }

  /**
   * Waiting for an event holds another stream.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void waitForAnEvent_holdsAnotherStreamBack(CudaDriver driver) {
    long first = driver.streams().streamCreateWithPriority(0, 1, 0);
    long second = driver.streams().streamCreateWithPriority(0, 1, 0);
    long event = driver.events().eventCreate(0, 2);
    Gate gate = Gate.on(driver, 0, first);
    driver.events().eventRecord(0, event, first);
    driver.streams().streamWaitEvent(0, second, event);
    driver.events().eventDestroy(0, event);
    assertThat(driver.streams().streamQuery(0, second)).isFalse();
    gate.open();
    driver.streams().streamSynchronize(0, second);
    assertThat(driver.streams().streamQuery(0, first)).isTrue();
    driver.streams().streamDestroy(0, first);
    driver.streams().streamDestroy(0, second);
  }

  /** Flag, value, a word that holds the stream, and one that does not. */
  private static final int[][] WAITS = {{0, 5, 4, 5}, {1, 7, 8, 7}, {2, 6, 1, 2}, {3, 0, -1, -2}};

  /**
   * Waiting for a word holds the stream until the word is written.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void waitForAWord_holdsTheStreamUntilItIsWritten(CudaDriver driver) {
    VarHandle word = ValueLayout.JAVA_INT.varHandle();
    MemorySegment memory = driver.memory().memHostAlloc(0, Integer.BYTES, 3);
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    for (int[] wait : WAITS) {
      word.setVolatile(memory, 0L, wait[2]);
      driver.streams().streamWaitValue32(0, stream, memory.address(), wait[1], wait[0]);
      assertThat(driver.streams().streamQuery(0, stream)).as("flag %d", wait[0]).isFalse();
      word.setVolatile(memory, 0L, wait[3]);
      driver.streams().streamSynchronize(0, stream);
    }
    word.setVolatile(memory, 0L, Integer.MIN_VALUE); // the difference counts, not the order
    driver.streams().streamWaitValue32(0, stream, memory.address(), Integer.MAX_VALUE, 0);
    driver.streams().streamSynchronize(0, stream);
    driver.streams().streamDestroy(0, stream);
    driver.memory().memFreeHost(0, memory.address());
  }

  /**
   * Waiting for a word at an address that cannot be waited for is refused.
   *
   * @param driver the driver under test
   */
  @CudaTest(simulatedOnly = true)
  public void waitForAWord_thatCannotBe_isRefused(CudaDriver driver) {
    long address = driver.memory().memHostAlloc(0, 8, 3).address();
    Refused.with(
        CudaStatus.INVALID_VALUE,
        () -> driver.streams().streamWaitValue32(0, 0, address + 2, 1, 0));
    Refused.with(
        CudaStatus.INVALID_VALUE, () -> driver.streams().streamWaitValue32(0, 0, address, 1, 4));
    Refused.with(CudaStatus.INVALID_VALUE, () -> driver.streams().streamWaitValue32(0, 0, 0, 1, 0));
    driver.memory().memFreeHost(0, address);
  }

  /**
   * A destroyed stream completes its work.
   *
   * @param driver the driver under test
   * @throws InterruptedException if the test is interrupted
   */
  @CudaTest
  public void destroyedStream_finishesItsWork(CudaDriver driver) throws InterruptedException {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    Gate gate = Gate.on(driver, 0, stream);
    CountDownLatch reached = new CountDownLatch(1);
    driver.streams().launchHostFunc(0, stream, reached::countDown);
    driver.streams().streamDestroy(0, stream);
    gate.open();
    reached.await();
    driver.devices().ctxSynchronize(0);
  }

  /**
   * Values that are no handles are INVALID_HANDLE.
   *
   * @param driver the driver under test
   */
  @CudaTest(simulatedOnly = true)
  public void handlesThatAreNone_areInvalidHandle(CudaDriver driver) {
    long event = driver.events().eventCreate(0, 0);
    long gone = driver.streams().streamCreateWithPriority(0, 0, 0);
    driver.streams().streamDestroy(0, gone);
    for (long handle : new long[] {3, -1, event, gone}) {
      Refused.with(CudaStatus.INVALID_HANDLE, () -> driver.streams().streamQuery(0, handle));
      Refused.with(CudaStatus.INVALID_HANDLE, () -> driver.streams().streamSynchronize(0, handle));
      Refused.with(CudaStatus.INVALID_HANDLE, () -> driver.streams().streamDestroy(0, handle));
      Refused.with(CudaStatus.INVALID_HANDLE, () -> driver.streams().streamGetId(0, handle));
      Refused.with(
          CudaStatus.INVALID_HANDLE, () -> driver.streams().launchHostFunc(0, handle, () -> {}));
    }
    driver.events().eventDestroy(0, event);
  }
}

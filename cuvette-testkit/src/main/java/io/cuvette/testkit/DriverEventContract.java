package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaStatus;

/** What every driver promises about events. Extend it in the tests of a driver. */
public abstract class DriverEventContract {
  private static final int NO_TIMING = 2;
  private static final int INTERPROCESS = 4;
  private static final long NULL_STREAM = 0;

  /** For subclasses. */
  protected DriverEventContract() {}

  /**
   * Every allowed flag works; others are INVALID_VALUE.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void everyAllowedFlag_works_andTheRestIsInvalidValue(CudaDriver driver) {
    for (int flags : new int[] {0, 1, 2, 3, 6, 7}) {
      long event = driver.events().eventCreate(0, flags);
      driver.events().eventRecord(0, event, NULL_STREAM);
      driver.events().eventSynchronize(0, event);
      assertThat(driver.events().eventQuery(0, event)).isTrue();
      driver.events().eventDestroy(0, event);
    }
    Refused.with(CudaStatus.INVALID_VALUE, () -> driver.events().eventCreate(0, INTERPROCESS));
    Refused.with(CudaStatus.INVALID_VALUE, () -> driver.events().eventCreate(0, 0x100));
  }

  /**
   * An event that was never recorded has completed.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void eventNeverRecorded_isDone(CudaDriver driver) {
    long event = driver.events().eventCreate(0, 0);
    assertThat(driver.events().eventQuery(0, event)).isTrue();
    driver.events().eventSynchronize(0, event);
    driver.events().eventDestroy(0, event);
  }

  /**
   * A recorded event completes with the work before it.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void recordedEvent_isDoneWithTheWorkBeforeIt(CudaDriver driver) {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    long event = driver.events().eventCreate(0, NO_TIMING);
    Gate gate = Gate.on(driver, 0, stream);
    driver.events().eventRecord(0, event, stream);
    assertThat(driver.events().eventQuery(0, event)).isFalse();
    gate.open();
    driver.events().eventSynchronize(0, event);
    assertThat(driver.events().eventQuery(0, event)).isTrue();
    driver.streams().streamDestroy(0, stream);
    driver.events().eventDestroy(0, event);
  }

  /**
   * The elapsed time is positive if there is work between the events.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void elapsedTime_isPositive_forWorkInBetween(CudaDriver driver) {
    long start = driver.events().eventCreate(0, 0);
    long end = driver.events().eventCreate(0, 0);
    long memory = driver.memory().memAlloc(0, 64 << 20);
    driver.events().eventRecord(0, start, NULL_STREAM);
    driver.transfers().memsetD8Async(0, memory, (byte) 1, 64 << 20, NULL_STREAM);
    driver.events().eventRecord(0, end, NULL_STREAM);
    driver.events().eventSynchronize(0, end);
    assertThat(driver.events().eventElapsedTime(0, start, end)).isPositive();
    driver.memory().memFree(0, memory);
    driver.events().eventDestroy(0, start);
    driver.events().eventDestroy(0, end);
  }

  /**
   * The elapsed time needs two recorded events with timing.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void elapsedTime_needsTwoRecordedEventsWithTiming(CudaDriver driver) {
    long timed = driver.events().eventCreate(0, 0);
    long fresh = driver.events().eventCreate(0, 0);
    long untimed = driver.events().eventCreate(0, NO_TIMING);
    driver.events().eventRecord(0, timed, NULL_STREAM);
    driver.events().eventRecord(0, untimed, NULL_STREAM);
    driver.streams().streamSynchronize(0, NULL_STREAM);
    Refused.with(
        CudaStatus.INVALID_HANDLE, () -> driver.events().eventElapsedTime(0, timed, fresh));
    Refused.with(
        CudaStatus.INVALID_HANDLE, () -> driver.events().eventElapsedTime(0, fresh, timed));
    Refused.with(
        CudaStatus.INVALID_HANDLE, () -> driver.events().eventElapsedTime(0, timed, untimed));
    driver.events().eventDestroy(0, timed);
    driver.events().eventDestroy(0, fresh);
    driver.events().eventDestroy(0, untimed);
  }

  /**
   * The elapsed time of work that still runs is NOT_READY.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void elapsedTime_ofWorkThatRuns_isNotReady(CudaDriver driver) {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    long start = driver.events().eventCreate(0, 0);
    long end = driver.events().eventCreate(0, 0);
    driver.events().eventRecord(0, start, stream);
    driver.streams().streamSynchronize(0, stream);
    Gate gate = Gate.on(driver, 0, stream);
    driver.events().eventRecord(0, end, stream);
    Refused.with(CudaStatus.NOT_READY, () -> driver.events().eventElapsedTime(0, start, end));
    gate.open();
    driver.streams().streamSynchronize(0, stream);
    assertThat(driver.events().eventElapsedTime(0, start, end)).isGreaterThanOrEqualTo(0);
    driver.events().eventDestroy(0, start);
    driver.events().eventDestroy(0, end);
    driver.streams().streamDestroy(0, stream);
  }
}

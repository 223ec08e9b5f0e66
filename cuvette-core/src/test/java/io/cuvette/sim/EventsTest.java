package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.data.Percentage.withPercentage;

import io.cuvette.driver.CudaStatus;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Events: flags, states, and the simulated time between them. */
class EventsTest {
  private static final long GIB = 1L << 30;
  private static final double GIB_BYTES = GIB;

  private final SimulatedDriver driver =
      SimulatedDriver.open(SimulatedOptions.DEFAULTS.withDevices(2));

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 3, 6, 7})
  void flags_thatMakeSense_areTaken(int flags) {
    driver.eventDestroy(0, driver.eventCreate(0, flags));
    assertThat(driver.liveEvents()).isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {4, 5, 8, -1})
  void otherFlags_areRefused(int flags) {
    SimTestBase.assertFails(
        CudaStatus.INVALID_VALUE, "flags: " + flags, () -> driver.eventCreate(0, flags));
  }

  @Test
  void eventNeverRecorded_isDone() {
    long event = driver.eventCreate(0, 0);
    assertThat(driver.eventQuery(0, event)).isTrue();
    driver.eventSynchronize(0, event);
    driver.streamWaitEvent(0, 0, event);
    assertThat(driver.streamQuery(0, 0)).isTrue();
  }

  @Test
  void recordedEvent_isDoneWithTheWorkBeforeIt_andAskingMakesProgress() {
    long stream = driver.streamCreateWithPriority(0, 1, 0);
    long address = driver.memAlloc(0, 64);
    long event = driver.eventCreate(0, 0);
    driver.memsetD8Async(0, address, (byte) 1, 64, stream);
    driver.memsetD8Async(0, address, (byte) 2, 64, stream);
    driver.eventRecord(0, event, stream);
    assertThat(driver.eventQuery(0, event)).isFalse();
    driver.eventSynchronize(0, event);
    assertThat(driver.eventQuery(0, event)).isTrue();
    assertThat(driver.streamQuery(0, stream)).isTrue();
  }

  @Test
  void elapsedTime_needsRecordedEventsWithTimingOfOneDevice() {
    long start = driver.eventCreate(0, 0);
    long end = driver.eventCreate(0, 0);
    long plain = driver.eventCreate(0, 2);
    long other = driver.eventCreate(1, 0);
    CudaStatus status = CudaStatus.INVALID_HANDLE;
    SimTestBase.assertFails(
        status, "start event: never recorded", () -> driver.eventElapsedTime(0, start, end));
    driver.eventRecord(0, start, 0);
    driver.eventRecord(0, plain, 0);
    driver.eventRecord(1, other, 0);
    SimTestBase.assertFails(
        status, "end event: never recorded", () -> driver.eventElapsedTime(0, start, end));
    SimTestBase.assertFails(
        status, "end event: made without timing", () -> driver.eventElapsedTime(0, start, plain));
    SimTestBase.assertFails(
        status, "devices 0 and 1", () -> driver.eventElapsedTime(0, start, other));
    SimTestBase.assertFails(status, "the same device", () -> driver.eventRecord(0, other, 0));
  }

  @Test
  void elapsedTime_isNotReadyBeforeTheWorkIsDone() {
    long start = driver.eventCreate(0, 0);
    long end = driver.eventCreate(0, 0);
    long address = driver.memAlloc(0, 64);
    driver.eventRecord(0, start, 0);
    for (int i = 0; i < 5; i++) {
      driver.memsetD8Async(0, address, (byte) i, 64, 0);
    }
    driver.eventRecord(0, end, 0);
    SimTestBase.assertFails(
        CudaStatus.NOT_READY, "not done", () -> driver.eventElapsedTime(0, start, end));
    driver.eventSynchronize(0, end);
    assertThat(driver.eventElapsedTime(0, start, end)).isPositive();
    assertThat(driver.eventElapsedTime(0, end, start)).isNegative();
  }

  private double gigabytesPerSecond(double bytes, Runnable work) {
    long start = driver.eventCreate(0, 0);
    long end = driver.eventCreate(0, 0);
    driver.eventRecord(0, start, 0);
    work.run();
    driver.eventRecord(0, end, 0);
    driver.eventSynchronize(0, end);
    return bytes / driver.eventElapsedTime(0, start, end) / 1e6;
  }

  @Test
  void copies_takeTheTimeMeasuredOnTheDevice() {
    long one = driver.memAlloc(0, GIB);
    long other = driver.memAlloc(0, GIB);
    long peer = driver.memAlloc(1, GIB);
    driver.memsetD8Async(0, one, (byte) 1, GIB, 0);
    assertThat(gigabytesPerSecond(GIB_BYTES, () -> driver.memcpyAsync(0, other, one, GIB, 0)))
        .isCloseTo(2129, withPercentage(2));
    assertThat(gigabytesPerSecond(GIB_BYTES, () -> driver.memsetD8Async(0, one, (byte) 2, GIB, 0)))
        .isCloseTo(4491, withPercentage(3));
    assertThat(gigabytesPerSecond(GIB_BYTES, () -> driver.memcpyAsync(0, peer, one, GIB, 0)))
        .isCloseTo(27.65, withPercentage(1));
    driver.ctxEnablePeerAccess(0, 1);
    assertThat(
            gigabytesPerSecond(GIB_BYTES, () -> driver.memcpyPeerAsync(0, peer, 1, one, 0, GIB, 0)))
        .isCloseTo(391, withPercentage(1));
  }

  @Test
  void pinnedTransfers_runAtTheSpeedOfTheBus() {
    long bytes = 128L << 20;
    long device = driver.memAlloc(0, bytes);
    MemorySegment host = driver.memHostAlloc(0, bytes, 0);
    assertThat(gigabytesPerSecond((double) bytes, () -> driver.memcpyHtoDAsync(0, device, host, 0)))
        .isCloseTo(55.3, withPercentage(1));
    assertThat(gigabytesPerSecond((double) bytes, () -> driver.memcpyDtoHAsync(0, host, device, 0)))
        .isCloseTo(55.3, withPercentage(1));
    driver.close();
  }

  @Test
  void streams_haveTimesOfTheirOwn_andWaitsJoinThem() {
    long one = driver.streamCreateWithPriority(0, 1, 0);
    long other = driver.streamCreateWithPriority(0, 1, 0);
    long a = driver.memAlloc(0, GIB);
    long b = driver.memAlloc(0, GIB);
    long[] events = new long[4];
    for (int i = 0; i < 4; i++) {
      events[i] = driver.eventCreate(0, 0);
    }
    driver.eventRecord(0, events[0], one);
    driver.eventRecord(0, events[1], other);
    driver.memsetD8Async(0, a, (byte) 1, GIB, one);
    driver.memsetD8Async(0, b, (byte) 1, GIB, other);
    driver.eventRecord(0, events[2], one);
    driver.streamWaitEvent(0, other, events[2]);
    driver.eventRecord(0, events[3], other);
    driver.ctxSynchronize(0);
    double fill = GIB / 4491e6;
    assertThat((double) driver.eventElapsedTime(0, events[0], events[2]))
        .isCloseTo(fill, withPercentage(5));
    assertThat((double) driver.eventElapsedTime(0, events[1], events[3]))
        .isCloseTo(fill, withPercentage(5));
  }

  @Test
  void simulatedTime_goesOnWithCallsAndWork() {
    long before = driver.simulatedNanos(0);
    long address = driver.memAlloc(0, 1 << 20);
    driver.memFree(0, address);
    assertThat((double) driver.simulatedNanos(0) - before).isCloseTo(56_690, withPercentage(1));
  }
}

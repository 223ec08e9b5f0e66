package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.data.Percentage.withPercentage;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.VirtualCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Events: flags, states, and the simulated time between them. */
class EventsTest {
  private static final long GIB = 1L << 30;
  private static final long MIB = 1L << 20;
  private static final double GIB_BYTES = GIB;

  private final SimulatedDriver driver =
      SimulatedDriver.open(SimulatedOptions.DEFAULTS.withDevices(2));

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 3, 6, 7})
  void flags_thatMakeSense_areTaken(int flags) {
    driver.events().eventDestroy(0, driver.events().eventCreate(0, flags));
    assertThat(driver.liveEvents()).isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {4, 5, 8, -1})
  void otherFlags_areRefused(int flags) {
    SimTestBase.assertFails(
        CudaStatus.INVALID_VALUE, "flags: " + flags, () -> driver.events().eventCreate(0, flags));
  }

  @Test
  void eventNeverRecorded_isDone() {
    long event = driver.events().eventCreate(0, 0);
    assertThat(driver.events().eventQuery(0, event)).isTrue();
    driver.events().eventSynchronize(0, event);
    driver.streams().streamWaitEvent(0, 0, event);
    assertThat(driver.streams().streamQuery(0, 0)).isTrue();
  }

  @Test
  void recordedEvent_isDoneWithTheWorkBeforeIt_andAskingMakesProgress() {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    long address = driver.memory().memAlloc(0, 64);
    long event = driver.events().eventCreate(0, 0);
    CountDownLatch goOn = SimTestBase.hold(driver, 0, stream);
    driver.transfers().memsetD8Async(0, address, (byte) 1, 64, stream);
    driver.transfers().memsetD8Async(0, address, (byte) 2, 64, stream);
    driver.events().eventRecord(0, event, stream);
    assertThat(driver.events().eventQuery(0, event)).isFalse();
    goOn.countDown();
    driver.events().eventSynchronize(0, event);
    assertThat(driver.events().eventQuery(0, event)).isTrue();
    assertThat(driver.streams().streamQuery(0, stream)).isTrue();
  }

  @Test
  void elapsedTime_needsRecordedEventsWithTimingOfOneDevice() {
    long start = driver.events().eventCreate(0, 0);
    long end = driver.events().eventCreate(0, 0);
    long plain = driver.events().eventCreate(0, 2);
    long other = driver.events().eventCreate(1, 0);
    CudaStatus status = CudaStatus.INVALID_HANDLE;
    SimTestBase.assertFails(
        status,
        "start event: never recorded",
        () -> driver.events().eventElapsedTime(0, start, end));
    driver.events().eventRecord(0, start, 0);
    driver.events().eventRecord(0, plain, 0);
    driver.events().eventRecord(1, other, 0);
    SimTestBase.assertFails(
        status, "end event: never recorded", () -> driver.events().eventElapsedTime(0, start, end));
    SimTestBase.assertFails(
        status,
        "end event: made without timing",
        () -> driver.events().eventElapsedTime(0, start, plain));
    SimTestBase.assertFails(
        status, "devices 0 and 1", () -> driver.events().eventElapsedTime(0, start, other));
    SimTestBase.assertFails(
        status, "the same device", () -> driver.events().eventRecord(0, other, 0));
  }

  @Test
  void elapsedTime_isNotReadyBeforeTheWorkIsDone() {
    long start = driver.events().eventCreate(0, 0);
    long end = driver.events().eventCreate(0, 0);
    long address = driver.memory().memAlloc(0, 64);
    CountDownLatch goOn = SimTestBase.hold(driver, 0, 0);
    driver.events().eventRecord(0, start, 0);
    for (int i = 0; i < 5; i++) {
      driver.transfers().memsetD8Async(0, address, (byte) i, 64, 0);
    }
    driver.events().eventRecord(0, end, 0);
    SimTestBase.assertFails(
        CudaStatus.NOT_READY, "not done", () -> driver.events().eventElapsedTime(0, start, end));
    goOn.countDown();
    driver.events().eventSynchronize(0, end);
    assertThat(driver.events().eventElapsedTime(0, start, end)).isPositive();
    assertThat(driver.events().eventElapsedTime(0, end, start)).isNegative();
  }

  private double gigabytesPerSecond(double bytes, Runnable work) {
    long start = driver.events().eventCreate(0, 0);
    long end = driver.events().eventCreate(0, 0);
    driver.events().eventRecord(0, start, 0);
    work.run();
    driver.events().eventRecord(0, end, 0);
    driver.events().eventSynchronize(0, end);
    return bytes / driver.events().eventElapsedTime(0, start, end) / 1e6;
  }

  @Test
  void copies_takeTheTimeMeasuredOnTheDevice() {
    long one = driver.memory().memAlloc(0, GIB);
    long other = driver.memory().memAlloc(0, GIB);
    long peer = driver.memory().memAlloc(1, GIB);
    driver.transfers().memsetD8Async(0, one, (byte) 1, GIB, 0);
    assertThat(
            gigabytesPerSecond(
                GIB_BYTES, () -> driver.transfers().memcpyAsync(0, other, one, GIB, 0)))
        .isCloseTo(2129, withPercentage(2));
    assertThat(
            gigabytesPerSecond(
                GIB_BYTES, () -> driver.transfers().memsetD8Async(0, one, (byte) 2, GIB, 0)))
        .isCloseTo(4491, withPercentage(3));
    assertThat(
            gigabytesPerSecond(
                GIB_BYTES, () -> driver.transfers().memcpyAsync(0, peer, one, GIB, 0)))
        .isCloseTo(27.65, withPercentage(1));
    driver.devices().ctxEnablePeerAccess(0, 1);
    assertThat(
            gigabytesPerSecond(
                GIB_BYTES, () -> driver.transfers().memcpyPeerAsync(0, peer, 1, one, 0, GIB, 0)))
        .isCloseTo(391, withPercentage(1));
  }

  @Test
  void pinnedTransfers_runAtTheSpeedOfTheBus() {
    long bytes = 128L << 20;
    long device = driver.memory().memAlloc(0, bytes);
    MemorySegment host = driver.memory().memHostAlloc(0, bytes, 0);
    assertThat(
            gigabytesPerSecond(
                (double) bytes, () -> driver.transfers().memcpyHtoDAsync(0, device, host, 0)))
        .isCloseTo(55.3, withPercentage(1));
    assertThat(
            gigabytesPerSecond(
                (double) bytes, () -> driver.transfers().memcpyDtoHAsync(0, host, device, 0)))
        .isCloseTo(55.3, withPercentage(1));
    driver.close();
  }

  @Test
  void pageableTransfers_areSlowerThanTheBus() {
    long bytes = 64L << 20;
    long device = driver.memory().memAlloc(0, bytes);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment host = arena.allocate(bytes);
      assertThat(
              gigabytesPerSecond(
                  (double) bytes, () -> driver.transfers().memcpyHtoDAsync(0, device, host, 0)))
          .isCloseTo(8, withPercentage(1));
      assertThat(
              gigabytesPerSecond(
                  (double) bytes, () -> driver.transfers().memcpyDtoHAsync(0, host, device, 0)))
          .isCloseTo(16.1, withPercentage(1));
    }
  }

  @Test
  void streams_haveTimesOfTheirOwn_andWaitsJoinThem() {
    long one = driver.streams().streamCreateWithPriority(0, 1, 0);
    long other = driver.streams().streamCreateWithPriority(0, 1, 0);
    long a = driver.memory().memAlloc(0, GIB);
    long b = driver.memory().memAlloc(0, GIB);
    long[] events = new long[4];
    for (int i = 0; i < 4; i++) {
      events[i] = driver.events().eventCreate(0, 0);
    }
    driver.events().eventRecord(0, events[0], one);
    driver.events().eventRecord(0, events[1], other);
    driver.transfers().memsetD8Async(0, a, (byte) 1, GIB, one);
    driver.transfers().memsetD8Async(0, b, (byte) 1, GIB, other);
    driver.events().eventRecord(0, events[2], one);
    driver.streams().streamWaitEvent(0, other, events[2]);
    driver.events().eventRecord(0, events[3], other);
    driver.devices().ctxSynchronize(0);
    double fill = GIB / 4491e6;
    assertThat((double) driver.events().eventElapsedTime(0, events[0], events[2]))
        .isCloseTo(fill, withPercentage(5));
    assertThat((double) driver.events().eventElapsedTime(0, events[1], events[3]))
        .isCloseTo(fill, withPercentage(5));
  }

  @Test
  void workBehindAWait_startsWhenTheOtherStreamIsDone() {
    long busy = driver.streams().streamCreateWithPriority(0, 1, 0);
    long idle = driver.streams().streamCreateWithPriority(0, 1, 0);
    long memory = driver.memory().memAlloc(0, GIB);
    long start = driver.events().eventCreate(0, 0);
    long filled = driver.events().eventCreate(0, 0);
    long end = driver.events().eventCreate(0, 0);
    driver.events().eventRecord(0, start, idle);
    driver.transfers().memsetD8Async(0, memory, (byte) 1, GIB, busy);
    driver.events().eventRecord(0, filled, busy);
    driver.streams().streamWaitEvent(0, idle, filled);
    driver.events().eventRecord(0, end, idle);
    driver.devices().ctxSynchronize(0);
    assertThat((double) driver.events().eventElapsedTime(0, start, end))
        .isCloseTo(GIB / 4491e6, withPercentage(5));
  }

  @Test
  void workOfAnIdleStream_startsWhenItIsQueued() {
    long start = driver.events().eventCreate(0, 0);
    long end = driver.events().eventCreate(0, 0);
    driver.events().eventRecord(0, start, 0);
    driver.streams().streamSynchronize(0, 0);
    driver.memory().memFree(0, driver.memory().memAlloc(0, 1 << 20));
    driver.events().eventRecord(0, end, 0);
    driver.streams().streamSynchronize(0, 0);
    assertThat(driver.events().eventElapsedTime(0, start, end)).isGreaterThan(0.05f);
  }

  @Test
  void simulatedTime_goesOnWithCallsAndWork() {
    long before = driver.simulatedNanos(0);
    long address = driver.memory().memAlloc(0, 1 << 20);
    driver.memory().memFree(0, address);
    assertThat((double) driver.simulatedNanos(0) - before).isCloseTo(56_690, withPercentage(1));
  }

  private double nanos(Runnable work) {
    return 1e9 / gigabytesPerSecond(1e9, work);
  }

  /** Less is copied at once from memory that lies in pieces. */
  @Test
  void memoryMappedInPieces_isCopiedSlowerThanPlainMemory() {
    long bytes = 64L << 20;
    long plain = driver.memory().memAlloc(0, bytes);
    for (long piece : new long[] {2L << 20, 32L << 20}) {
      long range = mapped(bytes, piece);
      double bandwidth = 2129 / (1 + 0.84 * (1 << 20) / piece);
      for (long source : new long[] {plain, range}) {
        long target = source == plain ? range : plain;
        assertThat(nanos(() -> driver.transfers().memcpyAsync(0, target, source, bytes, 0)))
            .isCloseTo(1500 + bytes / bandwidth, withPercentage(6));
      }
    }
    MemorySegment host = driver.memory().memHostAlloc(0, MIB, 0);
    long range = mapped(2L << 20, 2L << 20);
    assertThat(nanos(() -> driver.transfers().memcpyAsync(0, range, host.address(), MIB, 0)))
        .isCloseTo(1500 + MIB / 55.3, withPercentage(10));
  }

  private long mapped(long bytes, long piece) {
    VirtualCalls calls = driver.virtual();
    long range = calls.memAddressReserve(bytes + (2L << 20), 0, 0); // with a gap behind it
    for (long at = 0; at < bytes; at += piece) {
      long handle = calls.memCreate(piece, AllocationProperties.ofDevice(0, MemHandleType.NONE));
      calls.memMap(range + at, piece, 0, handle);
      calls.memRelease(handle);
    }
    calls.memSetAccess(range, bytes, 1, new int[] {0}, 3);
    return range;
  }

  @Test
  void prefetch_takesTheTimeOfTheBus() {
    long bytes = 8 * MIB;
    long managed = driver.memory().memAllocManaged(0, bytes, 1).address();
    assertThat(nanos(() -> driver.memory().memPrefetchAsync(0, managed, bytes, 1, 0, 0)))
        .isCloseTo(1500 + bytes / 55.3, withPercentage(5));
  }

  @Test
  void kernel_takesTimeForItsBlocks() {
    SimulatedKernel kernel = SimulatedKernel.of("takesTime", _ -> {});
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(kernel)) {
      long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(kernel)));
      long found = driver.kernels().libraryGetKernel(library, "takesTime");
      LaunchShape shape = new LaunchShape(4000, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);
      LaunchParameters none = new LaunchParameters(MemorySegment.NULL, List.of());
      assertThat(nanos(() -> driver.kernels().launchKernel(0, 0, found, shape, none)))
          .isBetween(3499.0, 7000.0);
    }
  }

  @Test
  void timeBetweenTwoStreams_isKnownOnceBothEventsAreDone() {
    long held = driver.streams().streamCreateWithPriority(0, 1, 0);
    long other = driver.streams().streamCreateWithPriority(0, 1, 0);
    long start = driver.events().eventCreate(0, 0);
    long end = driver.events().eventCreate(0, 0);
    CountDownLatch goOn = SimTestBase.hold(driver, 0, held);
    driver.events().eventRecord(0, start, held);
    driver.events().eventRecord(0, end, other);
    driver.streams().streamSynchronize(0, other);
    SimTestBase.assertFails(
        CudaStatus.NOT_READY, "not done", () -> driver.events().eventElapsedTime(0, start, end));
    goOn.countDown();
    driver.streams().streamSynchronize(0, held);
    assertThat(driver.events().eventElapsedTime(0, start, end)).isNotNaN();
  }

  @Test
  void timeOfNoWork_isNone_howeverMuchIsBeforeIt() {
    long memory = driver.memory().memAlloc(0, GIB);
    long start = driver.events().eventCreate(0, 0);
    long end = driver.events().eventCreate(0, 0);
    driver.transfers().memsetD8Async(0, memory, (byte) 1, GIB, 0);
    driver.events().eventRecord(0, start, 0);
    driver.events().eventRecord(0, end, 0);
    driver.events().eventSynchronize(0, end);
    assertThat(driver.events().eventElapsedTime(0, start, end)).isZero();
  }
}

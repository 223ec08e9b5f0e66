package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.internal.base.PagedBytes;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.CountDownLatch;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Memory allocated and freed in stream order: its life, its content, its attributes. */
class OrderedMemoryTest extends SimTestBase {
  private static final long SEEDS = 40;

  private final long stream = stream(0);

  private long host(int locationType) {
    return driver.pools().memPoolCreate(new PoolProperties(1, 0, locationType, 0, 0));
  }

  /** A program with two streams; gives how many seeds make the device fail. */
  private static long failingSeeds(Program program) {
    return LongStream.range(0, SEEDS)
        .filter(seed -> {
          try (SimulatedDriver driver =
              SimulatedDriver.open(SimulatedOptions.DEFAULTS.withSeed(seed))) {
            long one = driver.streams().streamCreateWithPriority(0, 1, 0);
            long other = driver.streams().streamCreateWithPriority(0, 1, 0);
            program.run(driver, one, other);
            driver.devices().ctxSynchronize(0);
            return false;
          } catch (CudaException e) {
            // The device finds it, or the call itself where the free is done already.
            assertThat(e.status())
                .as("seed=%d", seed)
                .isIn(CudaStatus.ILLEGAL_ADDRESS, CudaStatus.INVALID_VALUE);
            return true;
          }
        })
        .count();
  }

  @FunctionalInterface
  private interface Program {
    void run(SimulatedDriver driver, long one, long other);
  }

  private static void fill(SimulatedDriver driver, long address, long stream) {
    driver.transfers().memsetD8Async(0, address, (byte) 1, KIB, stream);
  }

  private static void order(SimulatedDriver driver, long first, long then) {
    long event = driver.events().eventCreate(0, 2);
    driver.events().eventRecord(0, event, first);
    driver.streams().streamWaitEvent(0, then, event);
  }

  @Test
  void memory_livesFromItsAllocationToItsFree_inStreamOrder() {
    long count =
        failingSeeds((driver, one, other) -> {
          long address = driver.ordered().memAllocAsync(0, KIB, one);
          fill(driver, address, one);
          order(driver, one, other);
          fill(driver, address, other);
          driver.ordered().memFreeAsync(0, address, other);
        });
    assertThat(count).isZero();
  }

  @Test
  void useAfterTheFree_inStreamOrder_failsForEverySeed() {
    long count =
        failingSeeds((driver, one, other) -> {
          long address = driver.ordered().memAllocAsync(0, KIB, one);
          driver.ordered().memFreeAsync(0, address, one);
          fill(driver, address, one);
        });
    assertThat(count).isEqualTo(SEEDS);
  }

  @Test
  void useOnAStreamThatIsNotOrdered_failsForSomeSeeds_beforeOrAfter() {
    long late =
        failingSeeds((driver, one, other) -> {
          long address = driver.ordered().memAllocAsync(0, KIB, one);
          driver.streams().streamSynchronize(0, one);
          fill(driver, address, other);
          driver.ordered().memFreeAsync(0, address, one);
        });
    assertThat(late).isBetween(3L, SEEDS - 3);
    long early =
        failingSeeds((driver, one, other) -> {
          long address = driver.ordered().memAllocAsync(0, KIB, one);
          fill(driver, address, other);
        });
    assertThat(early).isBetween(3L, SEEDS - 3);
  }

  @Test
  void fatalUse_isSticky() {
    long address = driver.ordered().memAllocAsync(0, KIB, stream);
    CountDownLatch goOn = hold(0, stream);
    driver.ordered().memFreeAsync(0, address, stream);
    fill(driver, address, stream);
    goOn.countDown();
    assertFails(
        CudaStatus.ILLEGAL_ADDRESS,
        "1024 bytes that were freed before",
        () -> driver.streams().streamSynchronize(0, stream));
    assertFails(
        CudaStatus.ILLEGAL_ADDRESS, "freed", () -> driver.ordered().memAllocAsync(0, KIB, stream));
    driver.ordered().memAllocAsync(1, KIB, stream(1));
  }

  @Test
  void secondFree_isInvalid_beforeAndAfterTheFirstHappened() {
    long address = driver.ordered().memAllocAsync(0, KIB, stream);
    CountDownLatch goOn = hold(0, stream);
    driver.ordered().memFreeAsync(0, address, stream);
    assertFails(
        CudaStatus.INVALID_VALUE,
        "was freed already",
        () -> driver.ordered().memFreeAsync(0, address, stream));
    goOn.countDown();
    assertFails(CudaStatus.INVALID_VALUE, "freed", () -> driver.memory().memFree(0, address));
    driver.streams().streamSynchronize(0, stream);
    assertFails(
        CudaStatus.INVALID_VALUE,
        "this was freed",
        () -> driver.ordered().memFreeAsync(0, address, stream));
  }

  @Test
  void onlyStartsOfStreamOrderedMemory_canBeFreedInOrder() {
    long plain = driver.memory().memAlloc(0, KIB);
    long pinned = driver.memory().memHostAlloc(0, KIB, 0).address();
    long ordered = driver.ordered().memAllocAsync(0, KIB, stream);
    String rule = "expected: memory allocated in stream order";
    assertFails(
        CudaStatus.INVALID_VALUE, rule, () -> driver.ordered().memFreeAsync(0, plain, stream));
    assertFails(
        CudaStatus.INVALID_VALUE, rule, () -> driver.ordered().memFreeAsync(0, pinned, stream));
    assertFails(
        CudaStatus.INVALID_VALUE,
        "expected: the start of",
        () -> driver.ordered().memFreeAsync(0, ordered + 8, stream));
    assertFails(
        CudaStatus.INVALID_VALUE, "live memory", () -> driver.ordered().memFreeAsync(0, 0, stream));
    assertThat(driver.liveAllocations()).isEqualTo(3);
  }

  @Test
  void plainFree_waitsAndGivesTheMemoryBackToItsPool() {
    long pool = driver.pools().deviceGetMemPool(0);
    long address = driver.ordered().memAllocAsync(0, KIB, stream);
    fill(driver, address, stream);
    driver.memory().memFree(0, address);
    assertThat(driver.pools().memPoolGetAttribute(pool, 7)).isZero();
    assertThat(driver.pools().memPoolGetAttribute(pool, 5)).isEqualTo(2 * MIB);
    assertThat(driver.liveAllocations()).isZero();
    driver.streams().streamSynchronize(0, stream);
    assertThat(driver.pools().memPoolGetAttribute(pool, 5)).isZero();
  }

  @Test
  void negativeSize_isRefused() {
    CudaStatus status = CudaStatus.INVALID_VALUE;
    assertFails(status, "(expected: >= 0)", () -> driver.ordered().memAllocAsync(0, -1, stream));
    long pool = host(2);
    assertFails(
        status,
        "(expected: >= 0)",
        () -> driver.ordered().memAllocFromPoolAsync(0, -1, pool, stream));
  }

  @ParameterizedTest
  @CsvSource({"1, 1", "1, 2", "1, 3", "2, 0"})
  void nothing_canBeAllocatedAndFreed(int type, int location) {
    long pool = driver.pools().memPoolCreate(new PoolProperties(type, 0, location, 0, 0));
    long one = driver.ordered().memAllocFromPoolAsync(0, 0, pool, stream);
    long other = driver.ordered().memAllocFromPoolAsync(0, 0, pool, stream);
    assertThat(other).isNotEqualTo(one).isNotZero();
    assertThat(driver.liveAllocations()).isEqualTo(2);
    driver.ordered().memFreeAsync(0, one, stream);
    driver.ordered().memFreeAsync(0, other, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(driver.liveAllocations()).isZero();
    assertThat(driver.pools().memPoolGetAttribute(pool, 7)).isZero();
  }

  @Test
  void capturedStream_takesMemoryOfTheGraphAlone_elseTheCaptureIsLost() {
    long address = driver.ordered().memAllocAsync(0, KIB, stream);
    long onHost = driver.pools().memPoolCreate(new PoolProperties(1, 0, 2, 0, 0));
    driver.captures().streamBeginCapture(0, stream, 2);
    assertFails(
        CudaStatus.STREAM_CAPTURE_UNSUPPORTED,
        "captured",
        () -> driver.ordered().memAllocFromPoolAsync(0, KIB, onHost, stream));
    assertThat(driver.captures().streamIsCapturing(0, stream)).isEqualTo(2);
    assertFails(
        CudaStatus.STREAM_CAPTURE_INVALIDATED,
        "",
        () -> driver.captures().streamEndCapture(0, stream));
    driver.captures().streamBeginCapture(0, stream, 2);
    long ofGraph = driver.ordered().memAllocAsync(0, KIB, stream);
    assertThat(driver.captures().streamIsCapturing(0, stream)).isEqualTo(1);
    assertThat(driver.liveAllocations()).isEqualTo(1);
    driver.ordered().memFreeAsync(0, ofGraph, stream);
    assertFails(
        CudaStatus.INVALID_VALUE,
        "memory of a graph",
        () -> driver.ordered().memFreeAsync(0, address, stream));
    assertThat(driver.captures().streamIsCapturing(0, stream)).isEqualTo(2);
    assertThat(driver.liveAllocations()).isEqualTo(1);
  }

  @Test
  void deviceMemory_costsNothingUntilItIsWritten() {
    try (SimulatedDriver large = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
      long queue = large.streams().streamCreateWithPriority(0, 1, 0);
      long address = large.ordered().memAllocAsync(0, 120 * GIB, queue);
      large.transfers().memsetD8Async(0, address + 119 * GIB, (byte) 3, 1, queue);
      MemorySegment host = large.memory().memHostAlloc(0, 2, 0);
      large.transfers().memcpyDtoHAsync(0, host, address + 119 * GIB, queue);
      large.streams().streamSynchronize(0, queue);
      assertThat(host.toArray(ValueLayout.JAVA_BYTE)).containsExactly(3, PagedBytes.UNTOUCHED);
    }
  }

  @ParameterizedTest
  @CsvSource({"2, 1", "3, 1", "2, 2"})
  void hostPoolMemory_isSeenByBoth(int locationType, int type) {
    long pool = driver.pools().memPoolCreate(new PoolProperties(type, 0, locationType, 0, 0));
    driver.pools().memPoolSetAccess(pool, 1, new int[] {0}, 3);
    long address = driver.ordered().memAllocFromPoolAsync(0, KIB, pool, stream);
    driver.streams().streamSynchronize(0, stream);
    try (Arena arena = Arena.ofShared()) {
      MemorySegment view = driver.memory().hostView(0, address, KIB, arena);
      view.set(ValueLayout.JAVA_BYTE, 7, (byte) 42);
      assertThat(read(address + 7, 1)).containsExactly(42);
      driver.transfers().memsetD8Async(0, address, (byte) 9, KIB, stream);
      driver.streams().streamSynchronize(0, stream);
      assertThat(view.get(ValueLayout.JAVA_BYTE, KIB - 1)).isEqualTo((byte) 9);
    }
    assertFails(
        CudaStatus.INVALID_VALUE, "of a pool", () -> driver.memory().memFreeHost(0, address));
    driver.ordered().memFreeAsync(0, address, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(driver.liveHostBytes()).isZero();
    assertFails(
        CudaStatus.INVALID_VALUE,
        "live memory",
        () -> driver.memory().hostView(0, address, KIB, Arena.global()));
  }

  @Test
  void viewThatOutlivesItsMemory_isNoCrash() {
    long pool = host(2);
    long address = driver.ordered().memAllocFromPoolAsync(0, KIB, pool, stream);
    MemorySegment view = driver.memory().hostView(0, address, KIB, Arena.ofAuto());
    driver.ordered().memFreeAsync(0, address, stream);
    driver.streams().streamSynchronize(0, stream);
    view.fill((byte) 1);
    assertThat(driver.liveAllocations()).isZero();
  }

  @ParameterizedTest
  @CsvSource({
    // kind, MEMORY_TYPE, IS_MANAGED, GPU_DIRECT_RDMA, ACCESS_FLAGS
    "1, 1, 2, 0, 1, 3",
    "1, 2, 1, 0, 0, 0",
    "1, 3, 1, 0, 0, 0",
    "2, 0, 2, 0, 0, 3",
  })
  void pointerAttributes_areThoseOfTheAllocation(
      int type, int location, int memoryType, int managed, int rdma, int access) {
    long pool = driver.pools().memPoolCreate(new PoolProperties(type, 0, location, 0, 0));
    driver.ordered().memAllocFromPoolAsync(0, 4 * KIB, pool, stream);
    long address = driver.ordered().memAllocFromPoolAsync(0, 4 * KIB, pool, stream);
    long inside = address + 100;
    assertThat(driver.memory().pointerGetAttribute(0, 17, inside)).isEqualTo(pool);
    assertThat(driver.memory().pointerGetAttribute(0, 2, inside)).isEqualTo(memoryType);
    assertThat(driver.memory().pointerGetAttribute(0, 8, inside)).isEqualTo(managed);
    assertThat(driver.memory().pointerGetAttribute(0, 11, inside)).isEqualTo(address);
    assertThat(driver.memory().pointerGetAttribute(0, 12, inside)).isEqualTo(4 * KIB);
    assertThat(driver.memory().pointerGetAttribute(0, 14, inside)).as("handle types").isZero();
    assertThat(driver.memory().pointerGetAttribute(0, 15, inside)).isEqualTo(rdma);
    assertThat(driver.memory().pointerGetAttribute(0, 10, inside)).as("legacy IPC").isZero();
    assertThat(driver.memory().pointerGetAttribute(0, 16, inside)).isEqualTo(access);
    assertThat(driver.memory().pointerGetAttribute(0, 17, driver.memory().memAlloc(0, 1))).isZero();
  }

  @ParameterizedTest
  @CsvSource({"0, 0, -2", "1, 1, 1", "2, 0, -1"})
  void managedPoolMemory_prefersTheLocationOfThePool_andTakesAdvice(int type, int id, int device) {
    long pool = driver.pools().memPoolCreate(new PoolProperties(2, 0, type, id, 0));
    long address = driver.ordered().memAllocFromPoolAsync(0, 4 * KIB, pool, stream);
    assertThat(driver.memory().memRangeGetAttribute(0, 2, address, 4 * KIB)).isEqualTo(device);
    driver.memory().memAdvise(0, address, 4 * KIB, 1, 1, 0);
    assertThat(driver.memory().memRangeGetAttribute(0, 1, address, 4 * KIB)).isEqualTo(1);
    driver.memory().memPrefetchAsync(0, address, 4 * KIB, 1, 1, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(driver.memory().memRangeGetAttribute(0, 4, address, 4 * KIB)).isEqualTo(1);
  }

  @Test
  void memoryOfAnotherDevicesPool_canBeAllocatedOnAnyStream() {
    long address =
        driver.ordered().memAllocFromPoolAsync(0, KIB, driver.pools().deviceGetMemPool(1), stream);
    assertThat(driver.memory().pointerGetAttribute(0, 9, address)).isEqualTo(1);
    assertThat(driver.liveBytes(1)).isEqualTo(KIB);
    driver.ordered().memFreeAsync(0, address, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(driver.devices().memGetInfo(1).freeBytes()).isEqualTo(64 * MIB);
  }

  @Test
  void closedDriver_refusesAndHoldsNoHostMemory() {
    driver.ordered().memAllocFromPoolAsync(0, KIB, host(2), stream);
    driver.close();
    assertThat(driver.liveHostBytes()).isZero();
    assertFails(
        CudaStatus.DEINITIALIZED, "closed", () -> driver.ordered().memAllocAsync(0, KIB, stream));
  }
}

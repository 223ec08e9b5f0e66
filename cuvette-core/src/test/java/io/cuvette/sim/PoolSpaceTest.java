package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.internal.pool.PoolSpace;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The sizes of pools: how they grow, what they keep, what they give back and when. */
class PoolSpaceTest extends SimTestBase {
  private static final int THRESHOLD = 4;
  private static final int RESERVED = 5;
  private static final int RESERVED_HIGH = 6;
  private static final int USED = 7;
  private static final int USED_HIGH = 8;

  private final SimulatedDriver large = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
  private final long free = large.devices().memGetInfo(0).freeBytes();
  private final long stream = large.streams().streamCreateWithPriority(0, 1, 0);
  private final long pool = create(0);

  private long create(long maxBytes) {
    return large.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, maxBytes));
  }

  private long allocate(long bytes) {
    return large.ordered().memAllocFromPoolAsync(0, bytes, pool, stream);
  }

  private void free(long address) {
    large.ordered().memFreeAsync(0, address, stream);
  }

  private long get(int attribute) {
    return large.pools().memPoolGetAttribute(pool, attribute);
  }

  @org.junit.jupiter.api.AfterEach
  void closeLarge() {
    large.close();
  }

  @ParameterizedTest
  @CsvSource({"1, 1", "2, 1", "3, 1", "4, 0", "5, 0", "6, 0", "7, 0", "8, 0"})
  void newPool_hasTheAttributesOfTheDriver(int attribute, long value) {
    assertThat(get(attribute)).isEqualTo(value);
  }

  @Test
  void settableAttributes_areSet_unsigned() {
    for (int policy = 1; policy <= 3; policy++) {
      large.pools().memPoolSetAttribute(pool, policy, 0);
      assertThat(get(policy)).isZero();
    }
    large.pools().memPoolSetAttribute(pool, THRESHOLD, -1);
    assertThat(get(THRESHOLD)).isEqualTo(-1);
    assertThat(large.pools().memPoolGetAttribute(create(0), THRESHOLD))
        .as("of this pool alone")
        .isZero();
  }

  @ParameterizedTest
  @CsvSource({
    "0, 0, attribute: 0",
    "9, 0, attribute: 9",
    "5, 0, attribute: 5",
    "7, 0, attribute: 7",
    "1, 2, value: 2 (expected: 0 or 1)",
    "3, -1, value: -1",
    "6, 1, value: 1 (expected: 0",
    "8, 5, value: 5",
  })
  void everythingElse_isInvalid(int attribute, long value, String message) {
    assertFails(
        CudaStatus.INVALID_VALUE,
        message,
        () -> large.pools().memPoolSetAttribute(pool, attribute, value));
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 9, -1})
  void unknownAttribute_cannotBeRead(int attribute) {
    assertFails(CudaStatus.INVALID_VALUE, "expected: 1 to 8", () -> get(attribute));
  }

  @Test
  void pool_growsInStepsOf32MiB_andUsesUnitsOf512Bytes() {
    allocate(1);
    assertThat(get(USED)).isEqualTo(512);
    assertThat(get(RESERVED)).isEqualTo(32 * MIB);
    allocate(32 * MIB - 512);
    assertThat(get(RESERVED)).isEqualTo(32 * MIB);
    allocate(513);
    assertThat(get(USED)).isEqualTo(32 * MIB + KIB);
    assertThat(get(RESERVED)).isEqualTo(64 * MIB);
    assertThat(large.devices().memGetInfo(0).freeBytes()).isEqualTo(free - 64 * MIB);
  }

  @Test
  void poolOfASmallDevice_growsInStepsOf2MiB() {
    long small = driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, 5 * MIB));
    driver.ordered().memAllocFromPoolAsync(0, KIB, small, 0);
    assertThat(driver.pools().memPoolGetAttribute(small, RESERVED)).isEqualTo(2 * MIB);
    driver.ordered().memAllocFromPoolAsync(0, 3 * MIB, small, 0);
    assertThat(driver.pools().memPoolGetAttribute(small, RESERVED)).isEqualTo(4 * MIB);
  }

  @Test
  void limit_countsAsTheNextMultipleOf32MiB_andIsKept() {
    long small = create(33 * MIB);
    long all = large.ordered().memAllocFromPoolAsync(0, 64 * MIB, small, stream);
    assertFails(
        CudaStatus.OUT_OF_MEMORY,
        "requested=512, reserved=67108864, used=67108864 bytes in a pool of device 0, at"
            + " most 67108864",
        () -> large.ordered().memAllocFromPoolAsync(0, 1, small, stream));
    large.ordered().memFreeAsync(0, all, stream);
    large.ordered().memAllocFromPoolAsync(0, 1, small, stream);
    assertThat(large.liveAllocations()).isEqualTo(1);
  }

  @Test
  void poolWithoutALimit_namesNone() {
    long pool = driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, 0));
    driver.ordered().memAllocFromPoolAsync(0, 40 * MIB, pool, 0);
    assertThatThrownBy(() -> driver.ordered().memAllocFromPoolAsync(0, 40 * MIB, pool, 0))
        .hasMessageContaining("bytes in a pool of device 0")
        .hasMessageNotContaining("at most");
  }

  @ParameterizedTest
  @CsvSource({"2, 0", "3, 0"})
  void limit_holdsForHostMemoryToo(int location, int id) {
    long host = large.pools().memPoolCreate(new PoolProperties(1, 0, location, id, 4 * MIB));
    assertFails(
        CudaStatus.OUT_OF_MEMORY,
        "at most 33554432",
        () -> large.ordered().memAllocFromPoolAsync(0, 33 * MIB, host, stream));
    assertThat(large.liveHostBytes()).isZero();
    large.ordered().memAllocFromPoolAsync(0, 4 * MIB, host, stream);
  }

  @Test
  void pool_growsByWhatTheDeviceHasLeft_andNotOneStepMore() {
    long small = driver.pools().deviceGetMemPool(0);
    long own = stream(0);
    driver.memory().memAlloc(0, 20 * MIB);
    driver.ordered().memAllocAsync(0, 30 * MIB, own);
    assertThat(driver.pools().memPoolGetAttribute(small, RESERVED)).isEqualTo(30 * MIB);
    driver.ordered().memAllocAsync(0, 3 * MIB, own);
    assertThat(driver.pools().memPoolGetAttribute(small, RESERVED)).isEqualTo(34 * MIB);
    assertFails(
        CudaStatus.OUT_OF_MEMORY,
        "requested=12582912, reserved=35651584, used=34603008",
        () -> driver.ordered().memAllocAsync(0, 12 * MIB, own));
    assertFails(
        CudaStatus.OUT_OF_MEMORY,
        "requested=" + (1L << 62),
        () -> driver.ordered().memAllocAsync(0, 1L << 62, own));
    driver.ordered().memAllocAsync(0, 11 * MIB, own);
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isZero();
    assertFails(CudaStatus.OUT_OF_MEMORY, "free=0", () -> driver.memory().memAlloc(0, 1));
  }

  @Test
  void cachedMemory_staysUntilTheNextSynchronization() {
    free(allocate(100 * MIB));
    assertThat(get(RESERVED)).isEqualTo(128 * MIB);
    assertThat(get(USED)).as("until the stream gets to the free").isEqualTo(100 * MIB);
    large.streams().streamSynchronize(0, stream);
    assertThat(get(RESERVED)).isZero();
    assertThat(get(USED)).isZero();
    assertThat(get(RESERVED_HIGH)).isEqualTo(128 * MIB);
    assertThat(get(USED_HIGH)).isEqualTo(100 * MIB);
    assertThat(large.devices().memGetInfo(0).freeBytes()).isEqualTo(free);
  }

  @Test
  void everySynchronization_givesBack_ofEveryPool() {
    long event = large.events().eventCreate(0, 2);
    long other = large.streams().streamCreateWithPriority(0, 1, 0);
    Runnable[] waits = {
      () -> large.streams().streamSynchronize(0, stream),
      () -> large.events().eventSynchronize(0, event),
      () -> large.devices().ctxSynchronize(0),
      () -> {
        // Done, as the host knows from asking; then any wait will do.
        while (!large.streams().streamQuery(0, stream)) {
          assertThat(get(RESERVED)).isEqualTo(64 * MIB);
        }
        assertThat(get(RESERVED)).isEqualTo(64 * MIB);
        large.streams().streamSynchronize(0, other);
      },
    };
    for (Runnable wait : waits) {
      free(allocate(40 * MIB));
      large.events().eventRecord(0, event, stream);
      assertThat(get(RESERVED)).isEqualTo(64 * MIB);
      wait.run();
      assertThat(get(RESERVED)).isZero();
    }
  }

  @Test
  void memoryInUse_isNotGivenBack() {
    long kept = allocate(33 * MIB);
    free(allocate(90 * MIB));
    assertThat(get(RESERVED)).isEqualTo(128 * MIB);
    large.streams().streamSynchronize(0, stream);
    assertThat(get(RESERVED)).isEqualTo(64 * MIB);
    free(kept);
    large.streams().streamSynchronize(0, stream);
    assertThat(get(RESERVED)).isZero();
  }

  @ParameterizedTest
  @CsvSource({"0, 0", "1, 0", "33554432, 32", "80000000, 64", "134217728, 128", "-1, 128"})
  void threshold_isWhatIsKept_inWholeSteps(long threshold, long keptMib) {
    large.pools().memPoolSetAttribute(pool, THRESHOLD, threshold);
    free(allocate(128 * MIB));
    large.streams().streamSynchronize(0, stream);
    assertThat(get(RESERVED)).isEqualTo(keptMib * MIB);
  }

  @ParameterizedTest
  @CsvSource({"0, 0", "1, 32", "67108864, 64", "67108865, 96", "-1, 128", "999999999, 128"})
  void trim_keepsAtLeastSoMuch(long keep, long keptMib) {
    large.pools().memPoolSetAttribute(pool, THRESHOLD, -1);
    free(allocate(128 * MIB));
    large.streams().streamSynchronize(0, stream);
    large.pools().memPoolTrimTo(pool, keep);
    assertThat(get(RESERVED)).isEqualTo(keptMib * MIB);
  }

  @Test
  void trim_keepsMemoryOfUnfinishedFrees_andOfThoseTheHostDoesNotKnow() {
    large.pools().memPoolSetAttribute(pool, THRESHOLD, -1);
    long used = allocate(10 * MIB);
    long freed = allocate(40 * MIB);
    free(freed);
    large.pools().memPoolTrimTo(pool, 0);
    assertThat(get(RESERVED)).isEqualTo(64 * MIB);
    large.streams().streamSynchronize(0, stream);
    large.pools().memPoolTrimTo(pool, 0);
    assertThat(get(RESERVED)).isEqualTo(32 * MIB);
    large.transfers().memsetD8Async(0, used, (byte) 1, 10 * MIB, stream);
    large.streams().streamSynchronize(0, stream);
  }

  /** As on an H200; {@link PoolTraceTest} replays what one did. */
  @Test
  void allocation_isInTheSmallestGap_andAfterAllOthersLast() {
    large.pools().memPoolSetAttribute(pool, THRESHOLD, -1);
    long wide = allocate(20 * MIB);
    allocate(512);
    long narrow = allocate(10 * MIB);
    allocate(512);
    free(wide);
    free(narrow);
    large.streams().streamSynchronize(0, stream);
    allocate(9 * MIB);
    allocate(20 * MIB);
    assertThat(get(RESERVED)).as("as long as there are gaps").isEqualTo(32 * MIB);
  }

  @Test
  void stepsInWhichNothingIs_moveToWhereTheyAreMissing() {
    large.pools().memPoolSetAttribute(pool, THRESHOLD, -1);
    long first = allocate(64 * MIB);
    allocate(32 * MIB);
    free(first);
    large.streams().streamSynchronize(0, stream);
    assertThat(get(RESERVED)).isEqualTo(96 * MIB);
    allocate(100 * MIB);
    assertThat(get(RESERVED)).as("less the two that were idle").isEqualTo(160 * MIB);
    allocate(64 * MIB);
    assertThat(get(RESERVED)).as("in the hole that they left").isEqualTo(224 * MIB);
  }

  @Test
  void gapWithMemory_isTakenBeforeASmallerOneWithout() {
    large.pools().memPoolSetAttribute(pool, THRESHOLD, -1);
    long without = allocate(64 * MIB);
    allocate(512);
    long with = allocate(100 * MIB);
    allocate(512);
    free(without);
    large.streams().streamSynchronize(0, stream);
    large.pools().memPoolTrimTo(pool, 0);
    free(with);
    large.streams().streamSynchronize(0, stream);
    assertThat(get(RESERVED)).isEqualTo(128 * MIB);
    allocate(50 * MIB);
    large.pools().memPoolTrimTo(pool, 0);
    assertThat(get(RESERVED)).as("the step behind it was idle").isEqualTo(96 * MIB);
  }

  @Test
  void refusedAllocation_leavesThePoolWithAllStepsThereWere() {
    long small = driver.pools().deviceGetMemPool(0);
    driver.pools().memPoolSetAttribute(small, THRESHOLD, -1);
    driver.memory().memAlloc(0, 20 * MIB);
    assertFails(
        CudaStatus.OUT_OF_MEMORY,
        "reserved=0",
        () -> driver.ordered().memAllocAsync(0, 50 * MIB, stream(0)));
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isZero();
    driver.pools().memPoolTrimTo(small, 0);
    long free = driver.devices().memGetInfo(0).freeBytes();
    assertThat(free).isGreaterThan(20 * MIB);
    driver.pools().memPoolSetAttribute(small, THRESHOLD, 0);
    assertFails(
        CudaStatus.OUT_OF_MEMORY,
        "reserved=0",
        () -> driver.ordered().memAllocAsync(0, 50 * MIB, stream(0)));
    assertThat(driver.devices().memGetInfo(0).freeBytes())
        .as("with a threshold of 0 it goes back at once")
        .isEqualTo(free);
  }

  @Test
  void highMarks_areResetToTheCurrentValues() {
    free(allocate(100 * MIB));
    allocate(10 * MIB);
    large.streams().streamSynchronize(0, stream);
    large.pools().memPoolSetAttribute(pool, RESERVED_HIGH, 0);
    large.pools().memPoolSetAttribute(pool, USED_HIGH, 0);
    assertThat(get(RESERVED_HIGH)).isEqualTo(32 * MIB);
    assertThat(get(USED_HIGH)).isEqualTo(10 * MIB);
    allocate(40 * MIB);
    assertThat(get(RESERVED_HIGH)).isEqualTo(64 * MIB);
    assertThat(get(USED_HIGH)).isEqualTo(50 * MIB);
  }

  @Test
  void cachedAllocation_costsSimulatedTimeAsMeasured_andGrowthMore() {
    free(allocate(MIB));
    long before = large.simulatedNanos(0);
    free(allocate(MIB));
    assertThat(large.simulatedNanos(0) - before).isBetween(540L, 600L);
    before = large.simulatedNanos(0);
    allocate(80 * MIB);
    assertThat(large.simulatedNanos(0) - before).isGreaterThan(60_000);
  }

  /** An H200's pool has addresses for twice its limit. */
  @Test
  void poolGrowsInVain_onlyForWhatHasAddresses() {
    long most = 64 * MIB;
    PoolSpace space = new PoolSpace(2 * MIB, most, 0, _ -> Long.MAX_VALUE, _ -> {});
    space.growInVain(space.gaps, 2 * most + 1);
    assertThat(space.reserved.bytes()).isZero();
    space.growInVain(space.gaps, 2 * most);
    assertThat(space.reserved.bytes()).isEqualTo(most);
  }
}

package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.MemPoolAttribute;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.internal.machine.SimCosts;
import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Pools as objects: which can be made, which is default, which is current, and how they end. */
class PoolsTest extends SimTestBase {
  private static final PoolProperties ON_DEVICE = new PoolProperties(1, 0, 1, 0, 0);

  private final long stream = stream(0);

  @ParameterizedTest
  @CsvSource({
    "1, 0, 1, 1",
    "1, 0, 2, 7",
    "1, 0, 3, 0",
    "2, 0, 0, 0",
    "2, 0, 0, -1",
    "2, 0, 1, 1",
    "2, 0, 2, -1",
    "2, 0, 3, 0",
  })
  void poolOfEachKind_canBeMadeAndUsed(int type, int handles, int location, int id) {
    long pool = driver.pools().memPoolCreate(new PoolProperties(type, handles, location, id, 0));
    long address = driver.ordered().memAllocFromPoolAsync(0, KIB, pool, stream);
    driver.pools().memPoolSetAccess(pool, 1, new int[] {0}, 3);
    driver.transfers().memsetD8Async(0, address, (byte) 5, KIB, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(read(address + KIB - 1, 1)).containsExactly(5);
    driver.ordered().memFreeAsync(0, address, stream);
    driver.pools().memPoolDestroy(pool);
    assertThat(driver.livePools()).isZero();
    assertThat(driver.liveAllocations()).isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void poolToExport_needsDescriptors(int location) {
    assumeThat(DescriptorCalls.find()).as("a machine with descriptors").isEmpty();
    assertFails(
        CudaStatus.NOT_SUPPORTED,
        "needs Linux and the module io.cuvette.ffm",
        () -> driver.pools().memPoolCreate(new PoolProperties(1, 1, location, 0, 0)));
    assertThat(driver.livePools()).isZero();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "0 | 0 | 1 | 0 | allocation type: 0 (expected: 1 pinned or 2 managed)",
        "3 | 0 | 1 | 0 | allocation type: 3",
        "1 | 0 | 0 | 0 | location type: 0 (expected: only managed memory)",
        "1 | 0 | 4 | 0 | location type: 4 (expected: 0 to 3)",
        "1 | 0 | 5 | 0 | location type: 5",
        "1 | 0 | 1 | 2 | device: 2 (expected: 0 to 1)",
        "1 | 0 | 1 | -1 | device: -1",
        "1 | 0 | 3 | 1 | NUMA node: 1 (expected: 0 to 0)",
        "1 | 1 | 2 | 0 | handle types: 1 for the host (expected: 0)",
        "1 | 8 | 1 | 0 | handle types: 8 for device 0 (expected: 0 or 1)",
        "1 | 9 | 3 | 0 | handle types: 9 for NUMA node 0 (expected: 0 or 1)",
        "1 | 2 | 1 | 0 | handle types: 2",
        "2 | 1 | 1 | 0 | handle types: 1 for managed memory of device 0 (expected: 0)",
      })
  void propertiesThatExcludeEachOther_areInvalid(
      int type, int handles, int location, int id, String message) {
    PoolProperties properties = new PoolProperties(type, handles, location, id, 0);
    assertFails(CudaStatus.INVALID_VALUE, message, () -> driver.pools().memPoolCreate(properties));
    assertThat(driver.livePools()).isZero();
  }

  @Test
  void eachDevice_hasItsDefaultPool_whichIsCurrentAtFirst() {
    long first = driver.pools().deviceGetDefaultMemPool(0);
    assertThat(driver.pools().deviceGetDefaultMemPool(1)).isNotEqualTo(first);
    assertThat(driver.pools().deviceGetMemPool(0)).isEqualTo(first);
    assertThat(driver.pools().memGetDefaultMemPool(1, 0, 1)).isEqualTo(first);
    assertThat(driver.pools().memGetMemPool(1, 0, 1)).isEqualTo(first);
    assertThat(driver.livePools()).isZero();
    assertThat(driver.report()).doesNotContain("pool");
    assertFails(CudaStatus.INVALID_DEVICE, "device: 2", () -> driver.pools().deviceGetMemPool(2));
    assertFails(CudaStatus.INVALID_VALUE, "default", () -> driver.pools().memPoolDestroy(first));
  }

  @ParameterizedTest
  @CsvSource({"2, 0, 1", "3, 0, 1", "0, 0, 2", "1, 1, 2", "2, 0, 2", "3, 0, 2"})
  void eachLocationAndType_hasItsDefaultPool(int location, int id, int type) {
    long pool = driver.pools().memGetDefaultMemPool(location, id, type);
    assertThat(pool).isNotEqualTo(driver.pools().deviceGetDefaultMemPool(0));
    long mine = driver.pools().memPoolCreate(new PoolProperties(type, 0, location, id, 0));
    driver.pools().memSetMemPool(location, id, type, mine);
    assertThat(driver.pools().memGetMemPool(location, id, type)).isEqualTo(mine);
    assertThat(driver.pools().memGetDefaultMemPool(location, id, type)).isEqualTo(pool);
    driver.pools().memPoolDestroy(mine);
    assertThat(driver.pools().memGetMemPool(location, id, type)).isEqualTo(pool);
  }

  @Test
  void allocation_comesFromTheCurrentPoolOfTheStreamsDevice() {
    long mine = driver.pools().memPoolCreate(ON_DEVICE);
    driver.pools().deviceSetMemPool(0, mine);
    long address = driver.ordered().memAllocAsync(0, KIB, stream);
    assertThat(driver.memory().pointerGetAttribute(0, 17, address)).isEqualTo(mine);
    long other = driver.ordered().memAllocAsync(1, KIB, stream(1));
    assertThat(driver.memory().pointerGetAttribute(1, 17, other))
        .isEqualTo(driver.pools().deviceGetDefaultMemPool(1));
  }

  @Test
  void poolOfAnotherLocation_cannotBeCurrent() {
    long other = driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 1, 0));
    long managed = driver.pools().memPoolCreate(new PoolProperties(2, 0, 1, 0, 0));
    String rule = "(expected: one of device 0)";
    assertFails(CudaStatus.INVALID_VALUE, rule, () -> driver.pools().deviceSetMemPool(0, other));
    assertFails(
        CudaStatus.INVALID_VALUE, rule, () -> driver.pools().memSetMemPool(1, 0, 1, managed));
    assertThat(driver.pools().deviceGetMemPool(0))
        .isEqualTo(driver.pools().deviceGetDefaultMemPool(0));
  }

  @Test
  void currentPool_staysSo_whileOthersEnd() {
    long mine = driver.pools().memPoolCreate(ON_DEVICE);
    long another = driver.pools().memPoolCreate(ON_DEVICE);
    driver.pools().deviceSetMemPool(0, mine);
    driver.pools().memPoolDestroy(another);
    assertThat(driver.pools().deviceGetMemPool(0)).isEqualTo(mine);
  }

  @Test
  void destroyedPool_isGone_andTheDefaultIsCurrentAgain() {
    long mine = driver.pools().memPoolCreate(ON_DEVICE);
    driver.pools().deviceSetMemPool(0, mine);
    driver.pools().memPoolDestroy(mine);
    assertThat(driver.pools().deviceGetMemPool(0))
        .isEqualTo(driver.pools().deviceGetDefaultMemPool(0));
    assertFails(CudaStatus.INVALID_VALUE, "destroyed", () -> driver.pools().memPoolDestroy(mine));
    assertFails(
        CudaStatus.INVALID_VALUE, "destroyed", () -> driver.pools().memPoolGetAttribute(mine, 5));
  }

  @Test
  void poolDestroyedWithMemoryInUse_keepsItUntilItIsFreed() {
    long mine = driver.pools().memPoolCreate(ON_DEVICE);
    driver.pools().memPoolSetAttribute(mine, 4, -1);
    long address = driver.ordered().memAllocFromPoolAsync(0, KIB, mine, stream);
    long cached = driver.ordered().memAllocFromPoolAsync(0, 33 * MIB, mine, stream);
    driver.ordered().memFreeAsync(0, cached, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(free()).isEqualTo(30 * MIB);
    driver.pools().memPoolDestroy(mine);
    assertThat(free()).as("what is cached goes at once").isEqualTo(62 * MIB);
    driver.transfers().memsetD8Async(0, address, (byte) 1, KIB, stream);
    driver.ordered().memFreeAsync(0, address, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(free()).isEqualTo(64 * MIB);
  }

  @Test
  void plainFreeOfTheLastMemoryOfADestroyedPool_givesThePoolBack() {
    long mine = driver.pools().memPoolCreate(ON_DEVICE);
    long address = driver.ordered().memAllocFromPoolAsync(0, KIB, mine, stream);
    driver.streams().streamSynchronize(0, stream);
    driver.pools().memPoolDestroy(mine);
    assertThat(free()).isLessThan(64 * MIB);
    driver.memory().memFree(0, address);
    assertThat(free()).isEqualTo(64 * MIB);
  }

  /** No call of the host comes between. */
  @Test
  void lastFreeInADestroyedPool_givesThePoolBackWhenItHappens() throws InterruptedException {
    long mine = driver.pools().memPoolCreate(ON_DEVICE);
    long address = driver.ordered().memAllocFromPoolAsync(0, KIB, mine, stream);
    driver.pools().memPoolDestroy(mine);
    assertThat(free()).isLessThan(64 * MIB);
    CountDownLatch reached = new CountDownLatch(1);
    driver.ordered().memFreeAsync(0, address, stream);
    driver.streams().launchHostFunc(0, stream, reached::countDown);
    reached.await();
    assertThat(free()).isEqualTo(64 * MIB);
  }

  private long free() {
    return driver.devices().memGetInfo(0).freeBytes();
  }

  @Test
  void handleOfADestroyedPool_isThatOfTheNext_andOldMemoryIsNotSaidToBeOfIt() {
    long mine = driver.pools().memPoolCreate(ON_DEVICE);
    long address = driver.ordered().memAllocFromPoolAsync(0, KIB, mine, stream);
    driver.pools().memPoolSetAccess(mine, 1, new int[] {1}, 3);
    driver.pools().memPoolDestroy(mine);
    long next = driver.pools().memPoolCreate(ON_DEVICE);
    assertThat(next).isEqualTo(mine);
    assertThat(driver.pools().memPoolGetAttribute(next, 7)).isZero();
    assertThat(driver.pools().memPoolGetAccess(next, 1, 1)).isZero();
    assertThat(driver.memory().pointerGetAttribute(0, 17, address)).isZero();
    driver.ordered().memFreeAsync(0, address, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(driver.pools().memPoolGetAttribute(next, 7)).isZero();
  }

  @Test
  void otherHandle_isNoPool() {
    assertFails(
        CudaStatus.INVALID_VALUE,
        "(expected: a live memory pool; this is a stream)",
        () -> driver.ordered().memAllocFromPoolAsync(0, 1, stream, stream));
    long pool = driver.pools().deviceGetMemPool(0);
    assertFails(
        CudaStatus.INVALID_HANDLE,
        "this is a memory pool",
        () -> driver.ordered().memAllocAsync(0, 1, pool));
  }

  @Test
  void liveObjects_areCountedAndNamed() {
    long pool = driver.pools().memPoolCreate(new PoolProperties(2, 0, 2, 0, 0));
    driver.ordered().memAllocFromPoolAsync(0, 100, pool, stream);
    driver.ordered().memAllocAsync(1, 200, stream(1));
    assertThat(driver.livePools()).isEqualTo(1);
    assertThat(driver.liveAllocations()).isEqualTo(2);
    assertThat(driver.liveBytes(1)).isEqualTo(512);
    assertThat(driver.liveHostBytes()).isEqualTo(100);
    assertThat(driver.report())
        .contains("MANAGED memory 0x")
        .contains(": 100 bytes, device 0 from a pool of managed memory of the host")
        .contains(": 200 bytes, device 1 from a pool of device 1")
        .contains("of managed memory of the host\n");
  }

  @Test
  void olderDriver_refusesWhatItDoesNotKnow() {
    try (SimulatedDriver old =
        SimulatedDriver.open(SimulatedOptions.DEFAULTS.withDriverVersion(12_080))) {
      assertThat(old.pools().deviceGetMemPool(0)).isEqualTo(old.pools().deviceGetDefaultMemPool(0));
      assertFails(
          CudaStatus.CALL_REQUIRES_NEWER_DRIVER,
          "CUDA 12.8 (expected: >= 13.0)",
          () -> old.pools().memGetMemPool(1, 0, 1));
      assertFails(
          CudaStatus.NOT_SUPPORTED,
          "need CUDA 13.0",
          () -> old.pools().memPoolCreate(new PoolProperties(2, 0, 0, 0, 0)));
    }
  }

  @Test
  void driverWithoutPools_refusesAllCallsOfThem() {
    SimulatedOptions first = SimulatedOptions.DEFAULTS.withDriverVersion(11_020);
    try (SimulatedDriver known = SimulatedDriver.open(first);
        SimulatedDriver old = SimulatedDriver.open(first.withDriverVersion(11_010))) {
      assertThat(known.pools().deviceGetMemPool(0)).isNotZero();
      long memory = old.memory().memAlloc(0, 8);
      for (ThrowingCallable call :
          new ThrowingCallable[] {
            () -> old.pools().deviceGetDefaultMemPool(0),
            () -> old.pools().deviceGetMemPool(0),
            () -> old.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, 0)),
            () -> old.pools().memPoolTrimTo(NO_HANDLE, 0),
            () -> old.ordered().memAllocAsync(0, 8, 0),
            () -> old.ordered().memAllocFromPoolAsync(0, 8, NO_HANDLE, 0),
            () -> old.ordered().memFreeAsync(0, memory, 0),
            () -> old.sharing().memPoolExportToShareableHandle(NO_HANDLE),
            () -> old.sharing().memPoolImportFromShareableHandle(-1),
            () -> old.sharing().memPoolExportPointer(memory),
            () -> old.sharing().memPoolImportPointer(NO_HANDLE, new byte[64])
          }) {
        assertFails(CudaStatus.CALL_REQUIRES_NEWER_DRIVER, "CUDA 11.1 (expected: >= 11.2)", call);
      }
    }
  }

  @Test
  void numaNodes_areASetting() {
    SimulatedOptions options = SimulatedOptions.DEFAULTS.withDevices(3).withNumaNodes(2);
    try (SimulatedDriver numa = SimulatedDriver.open(options)) {
      assertThat(java.util.List.of(0, 1, 2))
          .extracting(device -> numa.devices().deviceGetAttribute(134, device))
          .containsExactly(0, 1, 0);
      numa.pools().memPoolDestroy(numa.pools().memPoolCreate(new PoolProperties(1, 0, 3, 1, 0)));
      assertFails(
          CudaStatus.INVALID_VALUE,
          "NUMA node: 2 (expected: 0 to 1)",
          () -> numa.pools().memPoolCreate(new PoolProperties(1, 0, 3, 2, 0)));
    }
  }

  @Test
  void changeOfAPool_leavesACaptureOfTheThreadValid() {
    long pool = driver.pools().memPoolCreate(ON_DEVICE);
    driver.captures().streamBeginCapture(0, stream, 1);
    driver.pools().memPoolGetAttribute(pool, 4);
    driver.pools().memPoolSetAttribute(pool, 4, 1);
    driver.pools().memPoolTrimTo(pool, 0);
    assertThat(driver.captures().streamIsCapturing(0, stream)).isEqualTo(1);
  }

  @Test
  void poolThatIsMade_takesTimeOfTheHost() {
    long before = driver.simulatedNanos(0);
    long pool = driver.pools().memPoolCreate(ON_DEVICE);
    assertThat(driver.simulatedNanos(0) - before).isGreaterThanOrEqualTo(SimCosts.POOL_CREATE);
    driver.pools().memPoolDestroy(pool);
  }

  /** Whoever makes pool after pool does not fill the heap with them. */
  @Test
  @Timeout(60)
  void poolThatIsGone_isForgotten() throws InterruptedException {
    long pool = driver.pools().memPoolCreate(ON_DEVICE);
    WeakReference<Object> gone = new WeakReference<>(driver.machine.pools.get(pool));
    CountDownLatch goOn = hold(0, stream);
    long address = driver.ordered().memAllocFromPoolAsync(0, KIB, pool, stream);
    driver.ordered().memFreeAsync(0, address, stream);
    driver.pools().memPoolDestroy(pool);
    goOn.countDown();
    driver.streams().streamSynchronize(0, stream);
    for (int i = 0; i < 400 && gone.get() != null; i++) {
      System.gc();
      Thread.sleep(5);
    }
    assertThat(gone.get()).isNull();
  }

  @Test
  void eachWait_releasesWhatIsAboveTheThreshold() {
    long event = driver.events().eventCreate(0, 2);
    long pool = driver.pools().memPoolCreate(ON_DEVICE);
    Map<String, Runnable> waits =
        Map.of(
            "stream", () -> driver.streams().streamSynchronize(0, stream),
            "event", () -> driver.events().eventSynchronize(0, event),
            "device", () -> driver.devices().ctxSynchronize(0));
    waits.forEach((name, wait) -> {
      long address = driver.ordered().memAllocFromPoolAsync(0, KIB, pool, stream);
      driver.ordered().memFreeAsync(0, address, stream);
      driver.events().eventRecord(0, event, stream);
      assertThat(reserved(pool)).as("before the wait for the %s", name).isPositive();
      wait.run();
      assertThat(reserved(pool)).as("after the wait for the %s", name).isZero();
    });
  }

  private long reserved(long pool) {
    return driver.pools().memPoolGetAttribute(pool, MemPoolAttribute.RESERVED_MEM_CURRENT);
  }
}

package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.PoolProperties;
import org.junit.jupiter.api.Test;
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
    long pool = driver.memPoolCreate(new PoolProperties(type, handles, location, id, 0));
    long address = driver.memAllocFromPoolAsync(0, KIB, pool, stream);
    driver.memPoolSetAccess(pool, 1, new int[] {0}, 3);
    driver.memsetD8Async(0, address, (byte) 5, KIB, stream);
    driver.streamSynchronize(0, stream);
    assertThat(read(address + KIB - 1, 1)).containsExactly(5);
    driver.memFreeAsync(0, address, stream);
    driver.memPoolDestroy(pool);
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
        () -> driver.memPoolCreate(new PoolProperties(1, 1, location, 0, 0)));
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
    assertFails(CudaStatus.INVALID_VALUE, message, () -> driver.memPoolCreate(properties));
    assertThat(driver.livePools()).isZero();
  }

  @Test
  void eachDevice_hasItsDefaultPool_whichIsCurrentAtFirst() {
    long first = driver.deviceGetDefaultMemPool(0);
    assertThat(driver.deviceGetDefaultMemPool(1)).isNotEqualTo(first);
    assertThat(driver.deviceGetMemPool(0)).isEqualTo(first);
    assertThat(driver.memGetDefaultMemPool(1, 0, 1)).isEqualTo(first);
    assertThat(driver.memGetMemPool(1, 0, 1)).isEqualTo(first);
    assertThat(driver.livePools()).isZero();
    assertThat(driver.report()).doesNotContain("pool");
    assertFails(CudaStatus.INVALID_DEVICE, "device: 2", () -> driver.deviceGetMemPool(2));
    assertFails(CudaStatus.INVALID_VALUE, "default", () -> driver.memPoolDestroy(first));
  }

  @ParameterizedTest
  @CsvSource({"2, 0, 1", "3, 0, 1", "0, 0, 2", "1, 1, 2", "2, 0, 2", "3, 0, 2"})
  void eachLocationAndType_hasItsDefaultPool(int location, int id, int type) {
    long pool = driver.memGetDefaultMemPool(location, id, type);
    assertThat(pool).isNotEqualTo(driver.deviceGetDefaultMemPool(0));
    long mine = driver.memPoolCreate(new PoolProperties(type, 0, location, id, 0));
    driver.memSetMemPool(location, id, type, mine);
    assertThat(driver.memGetMemPool(location, id, type)).isEqualTo(mine);
    assertThat(driver.memGetDefaultMemPool(location, id, type)).isEqualTo(pool);
    driver.memPoolDestroy(mine);
    assertThat(driver.memGetMemPool(location, id, type)).isEqualTo(pool);
  }

  @Test
  void allocation_comesFromTheCurrentPoolOfTheStreamsDevice() {
    long mine = driver.memPoolCreate(ON_DEVICE);
    driver.deviceSetMemPool(0, mine);
    long address = driver.memAllocAsync(0, KIB, stream);
    assertThat(driver.pointerGetAttribute(0, 17, address)).isEqualTo(mine);
    long other = driver.memAllocAsync(1, KIB, stream(1));
    assertThat(driver.pointerGetAttribute(1, 17, other))
        .isEqualTo(driver.deviceGetDefaultMemPool(1));
  }

  @Test
  void poolOfAnotherLocation_cannotBeCurrent() {
    long other = driver.memPoolCreate(new PoolProperties(1, 0, 1, 1, 0));
    long managed = driver.memPoolCreate(new PoolProperties(2, 0, 1, 0, 0));
    String rule = "(expected: one of device 0)";
    assertFails(CudaStatus.INVALID_VALUE, rule, () -> driver.deviceSetMemPool(0, other));
    assertFails(CudaStatus.INVALID_VALUE, rule, () -> driver.memSetMemPool(1, 0, 1, managed));
    assertThat(driver.deviceGetMemPool(0)).isEqualTo(driver.deviceGetDefaultMemPool(0));
  }

  @Test
  void destroyedPool_isGone_andTheDefaultIsCurrentAgain() {
    long mine = driver.memPoolCreate(ON_DEVICE);
    driver.deviceSetMemPool(0, mine);
    driver.memPoolDestroy(mine);
    assertThat(driver.deviceGetMemPool(0)).isEqualTo(driver.deviceGetDefaultMemPool(0));
    assertFails(CudaStatus.INVALID_VALUE, "destroyed", () -> driver.memPoolDestroy(mine));
    assertFails(CudaStatus.INVALID_VALUE, "destroyed", () -> driver.memPoolGetAttribute(mine, 5));
  }

  @Test
  void poolDestroyedWithMemoryInUse_keepsItUntilItIsFreed() {
    long mine = driver.memPoolCreate(ON_DEVICE);
    driver.memPoolSetAttribute(mine, 4, -1);
    long address = driver.memAllocFromPoolAsync(0, KIB, mine, stream);
    long cached = driver.memAllocFromPoolAsync(0, 33 * MIB, mine, stream);
    driver.memFreeAsync(0, cached, stream);
    driver.streamSynchronize(0, stream);
    assertThat(free()).isEqualTo(30 * MIB);
    driver.memPoolDestroy(mine);
    assertThat(free()).as("what is cached goes at once").isEqualTo(62 * MIB);
    driver.memsetD8Async(0, address, (byte) 1, KIB, stream);
    driver.memFreeAsync(0, address, stream);
    driver.streamSynchronize(0, stream);
    assertThat(free()).isEqualTo(64 * MIB);
  }

  private long free() {
    return driver.memGetInfo(0).freeBytes();
  }

  @Test
  void handleOfADestroyedPool_isThatOfTheNext_andOldMemoryIsNotSaidToBeOfIt() {
    long mine = driver.memPoolCreate(ON_DEVICE);
    long address = driver.memAllocFromPoolAsync(0, KIB, mine, stream);
    driver.memPoolSetAccess(mine, 1, new int[] {1}, 3);
    driver.memPoolDestroy(mine);
    long next = driver.memPoolCreate(ON_DEVICE);
    assertThat(next).isEqualTo(mine);
    assertThat(driver.memPoolGetAttribute(next, 7)).isZero();
    assertThat(driver.memPoolGetAccess(next, 1, 1)).isZero();
    assertThat(driver.pointerGetAttribute(0, 17, address)).isZero();
    driver.memFreeAsync(0, address, stream);
    driver.streamSynchronize(0, stream);
    assertThat(driver.memPoolGetAttribute(next, 7)).isZero();
  }

  @Test
  void otherHandle_isNoPool() {
    assertFails(
        CudaStatus.INVALID_VALUE,
        "(expected: a live memory pool; this is a stream)",
        () -> driver.memAllocFromPoolAsync(0, 1, stream, stream));
    long pool = driver.deviceGetMemPool(0);
    assertFails(
        CudaStatus.INVALID_HANDLE, "this is a memory pool", () -> driver.memAllocAsync(0, 1, pool));
  }

  @Test
  void liveObjects_areCountedAndNamed() {
    long pool = driver.memPoolCreate(new PoolProperties(2, 0, 2, 0, 0));
    driver.memAllocFromPoolAsync(0, 100, pool, stream);
    driver.memAllocAsync(1, 200, stream(1));
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
      assertThat(old.deviceGetMemPool(0)).isEqualTo(old.deviceGetDefaultMemPool(0));
      assertFails(
          CudaStatus.CALL_REQUIRES_NEWER_DRIVER,
          "CUDA 12080 (expected: >= 13000)",
          () -> old.memGetMemPool(1, 0, 1));
      assertFails(
          CudaStatus.NOT_SUPPORTED,
          "need CUDA 13.0",
          () -> old.memPoolCreate(new PoolProperties(2, 0, 0, 0, 0)));
    }
  }

  @Test
  void numaNodes_areASetting() {
    SimulatedOptions options = SimulatedOptions.DEFAULTS.withDevices(3).withNumaNodes(2);
    try (SimulatedDriver numa = SimulatedDriver.open(options)) {
      assertThat(java.util.List.of(0, 1, 2))
          .extracting(device -> numa.deviceGetAttribute(134, device))
          .containsExactly(0, 1, 0);
      numa.memPoolDestroy(numa.memPoolCreate(new PoolProperties(1, 0, 3, 1, 0)));
      assertFails(
          CudaStatus.INVALID_VALUE,
          "NUMA node: 2 (expected: 0 to 1)",
          () -> numa.memPoolCreate(new PoolProperties(1, 0, 3, 2, 0)));
    }
  }

  @Test
  void changeOfAPool_leavesACaptureOfTheThreadValid() {
    long pool = driver.memPoolCreate(ON_DEVICE);
    driver.streamBeginCapture(0, stream, 1);
    driver.memPoolGetAttribute(pool, 4);
    driver.memPoolSetAttribute(pool, 4, 1);
    driver.memPoolTrimTo(pool, 0);
    assertThat(driver.streamIsCapturing(0, stream)).isEqualTo(1);
  }
}

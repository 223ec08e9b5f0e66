package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The driver's pools on a real GPU; skipped where there is none. */
class FfmPoolsGpuTest {
  private static final int BYTES = 1 << 20;
  private static final int DEVICE = 1; // the location type
  private static final int HOST = 2;
  private static final int USED = 7;
  private static final int USED_MOST = 8;
  private static final int RESERVED = 5;
  private static final int THRESHOLD = 4;

  private CudaDriver driver;
  private long stream;
  private long pool;

  @BeforeEach
  void open() {
    FfmDriverProvider provider = new FfmDriverProvider();
    assumeTrue(provider.isAvailable(), "no GPU");
    CudaDriver opened = provider.open("");
    if (opened.devices().deviceGetAttribute(115, 0) == 0) {
      opened.close();
      assumeTrue(false, "no memory pools");
    }
    driver = opened;
    stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    pool = driver.pools().memPoolCreate(new PoolProperties(1, 0, DEVICE, 0, 0));
  }

  @AfterEach
  void close() {
    if (driver != null) {
      driver.streams().streamSynchronize(0, stream);
      driver.pools().memPoolDestroy(pool);
      driver.streams().streamDestroy(0, stream);
      driver.close();
    }
  }

  private static void assertStatus(CudaStatus status, Runnable call) {
    assertThatThrownBy(call::run)
        .isInstanceOfSatisfying(CudaException.class, e -> assertThat(e.status()).isEqualTo(status));
  }

  @Test
  void memory_isUsedInStreamOrder() {
    MemorySegment target = driver.memory().memHostAlloc(0, BYTES, 1);
    long memory = driver.ordered().memAllocFromPoolAsync(0, BYTES, pool, stream);
    driver.transfers().memsetD8Async(0, memory, (byte) 7, BYTES, stream);
    driver.transfers().memcpyDtoHAsync(0, target, memory, stream);
    driver.ordered().memFreeAsync(0, memory, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(target.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 7);
    assertThat(target.get(ValueLayout.JAVA_BYTE, BYTES - 1)).isEqualTo((byte) 7);
    driver.memory().memFreeHost(0, target.address());
  }

  @Test
  void memoryOfTheDefaultStream_isThatOfTheDevice() {
    for (long special = 0; special <= 2; special++) {
      long memory = driver.ordered().memAllocAsync(0, BYTES, special);
      assertThat(driver.memory().pointerGetAttribute(0, 9, memory)).isZero();
      driver.ordered().memFreeAsync(0, memory, special);
      driver.streams().streamSynchronize(0, special);
    }
  }

  @Test
  void attributes_tellWhatIsUsedAndKept() {
    driver.pools().memPoolSetAttribute(pool, THRESHOLD, -1);
    assertThat(driver.pools().memPoolGetAttribute(pool, THRESHOLD)).isEqualTo(-1);
    long memory = driver.ordered().memAllocFromPoolAsync(0, BYTES, pool, stream);
    assertThat(driver.pools().memPoolGetAttribute(pool, USED)).isGreaterThanOrEqualTo(BYTES);
    driver.ordered().memFreeAsync(0, memory, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(driver.pools().memPoolGetAttribute(pool, USED)).isZero();
    assertThat(driver.pools().memPoolGetAttribute(pool, USED_MOST)).isGreaterThanOrEqualTo(BYTES);
    assertThat(driver.pools().memPoolGetAttribute(pool, RESERVED)).isGreaterThanOrEqualTo(BYTES);
    driver.pools().memPoolSetAttribute(pool, USED_MOST, 0);
    assertThat(driver.pools().memPoolGetAttribute(pool, USED_MOST)).isZero();
    driver.pools().memPoolTrimTo(pool, 0);
    assertThat(driver.pools().memPoolGetAttribute(pool, RESERVED)).isZero();
  }

  @Test
  void policies_canBeTurnedOffAndOn() {
    for (int policy = 1; policy <= 3; policy++) {
      for (long value = 0; value <= 1; value++) {
        driver.pools().memPoolSetAttribute(pool, policy, value);
        assertThat(driver.pools().memPoolGetAttribute(pool, policy)).isEqualTo(value);
      }
    }
  }

  @Test
  void currentPool_isTheOneThatWasSet() {
    long before = driver.pools().deviceGetMemPool(0);
    driver.pools().deviceSetMemPool(0, pool);
    try {
      assertThat(driver.pools().deviceGetMemPool(0)).isEqualTo(pool);
      assertThat(driver.pools().deviceGetDefaultMemPool(0)).isNotEqualTo(pool).isNotZero();
      long memory = driver.ordered().memAllocAsync(0, BYTES, stream);
      assertThat(driver.memory().pointerGetAttribute(0, 17, memory)).isEqualTo(pool);
      driver.ordered().memFreeAsync(0, memory, stream);
    } finally {
      driver.pools().deviceSetMemPool(0, before);
    }
  }

  @Test
  void poolsOfLocations_includeThoseOfDevices() {
    assumeTrue(driver.devices().driverGetVersion() >= 13_000, "needs CUDA 13");
    assertThat(driver.pools().memGetDefaultMemPool(DEVICE, 0, 1))
        .isEqualTo(driver.pools().deviceGetDefaultMemPool(0));
    long before = driver.pools().memGetMemPool(DEVICE, 0, 1);
    driver.pools().memSetMemPool(DEVICE, 0, 1, pool);
    try {
      assertThat(driver.pools().deviceGetMemPool(0)).isEqualTo(pool);
    } finally {
      driver.pools().memSetMemPool(DEVICE, 0, 1, before);
    }
  }

  @Test
  void hostPool_givesMemoryTheHostReads() {
    assumeTrue(driver.devices().driverGetVersion() >= 13_000, "needs CUDA 13");
    assumeTrue(driver.devices().deviceGetAttribute(144, 0) != 0, "no pools of the host");
    long hostPool = driver.pools().memPoolCreate(new PoolProperties(1, 0, HOST, 0, 0));
    driver
        .pools()
        .memPoolSetAccess(
            hostPool, DEVICE, new int[] {0}, 3); // at first only the host may touch it
    long memory = driver.ordered().memAllocFromPoolAsync(0, BYTES, hostPool, stream);
    driver.transfers().memsetD8Async(0, memory, (byte) 9, BYTES, stream);
    driver.streams().streamSynchronize(0, stream);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment view = driver.memory().hostView(0, memory, BYTES, arena);
      assertThat(view.get(ValueLayout.JAVA_BYTE, BYTES - 1)).isEqualTo((byte) 9);
    }
    driver.ordered().memFreeAsync(0, memory, stream);
    driver.streams().streamSynchronize(0, stream);
    driver.pools().memPoolDestroy(hostPool);
  }

  @Test
  void access_belongsToTheDeviceFirst() {
    assertThat(driver.pools().memPoolGetAccess(pool, DEVICE, 0)).isEqualTo(3);
    assumeTrue(driver.devices().deviceGetCount() > 1, "one GPU");
    assumeTrue(driver.devices().deviceCanAccessPeer(1, 0), "no peer access");
    assertThat(driver.pools().memPoolGetAccess(pool, DEVICE, 1)).isZero();
    driver.pools().memPoolSetAccess(pool, DEVICE, new int[] {1}, 3);
    assertThat(driver.pools().memPoolGetAccess(pool, DEVICE, 1)).isEqualTo(3);
    driver.pools().memPoolSetAccess(pool, DEVICE, new int[] {1}, 0);
    assertThat(driver.pools().memPoolGetAccess(pool, DEVICE, 1)).isZero();
  }

  @Test
  void misuse_isInvalid() {
    assertStatus(
        CudaStatus.INVALID_VALUE,
        () -> driver.pools().memPoolCreate(new PoolProperties(1, 1, HOST, 0, 0)));
    assertThatThrownBy(
            () -> driver.pools().memPoolDestroy(driver.pools().deviceGetDefaultMemPool(0)))
        .isInstanceOf(CudaException.class);
  }
}

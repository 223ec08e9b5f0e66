package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Calls about pools reach their function with each argument and structure in place. */
class FfmPoolCallsTest {
  private static final long BIG = 0x7654_3210_fedcL;

  private StubLibrary library;
  private CudaDriver driver;

  @BeforeEach
  void open(@TempDir Path folder) {
    library = StubLibrary.compile(folder);
    driver = library.open();
    library.reset();
    library.answer(BIG, 0);
  }

  @AfterEach
  void close() {
    if (driver != null) {
      driver.close();
    }
  }

  private void noted(String... calls) {
    assertThat(library.calls()).containsExactly(calls);
  }

  private static void assertStatus(CudaStatus status, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(CudaException.class, e -> assertThat(e.status()).isEqualTo(status));
  }

  @Test
  void poolsOfDevices() {
    assertThat(driver.pools().deviceGetDefaultMemPool(1)).isEqualTo(BIG);
    assertThat(driver.pools().deviceGetMemPool(0)).isEqualTo(BIG);
    driver.pools().deviceSetMemPool(1, BIG);
    noted(
        "cuDeviceGetDefaultMemPool@11020(41) in 0",
        "cuDeviceGetMemPool@11020(40) in 0",
        "cuDeviceSetMemPool@11020(41, 76543210fedc) in 0");
  }

  @Test
  void poolsOfLocations_nameDevicesByHandleAndNodesAsTheyAre() {
    assertThat(driver.pools().memGetDefaultMemPool(1, 1, 2)).isEqualTo(BIG);
    assertThat(driver.pools().memGetMemPool(3, 1, 1)).isEqualTo(BIG);
    driver.pools().memSetMemPool(2, 0, 1, BIG);
    noted(
        "cuMemGetDefaultMemPool@13000({1, 41}, 2) in 0",
        "cuMemGetMemPool@13000({3, 1}, 1) in 0",
        "cuMemSetMemPool@13000({2, 0}, 1, 76543210fedc) in 0");
  }

  @Test
  void memPoolCreate_passesEveryPropertyAndLeavesTheRestZero() {
    assertThat(driver.pools().memPoolCreate(new PoolProperties(1, 8, 1, 1, 1L << 40)))
        .isEqualTo(BIG);
    assertThat(driver.pools().memPoolCreate(new PoolProperties(2, 0, 3, 1, 0))).isEqualTo(BIG);
    noted(
        "cuMemPoolCreate@11020({1, 8, {1, 41}, 1099511627776, 0}) in 0",
        "cuMemPoolCreate@11020({2, 0, {3, 1}, 0, 0}) in 0");
  }

  @Test
  void poolsEndAndShrink() {
    driver.pools().memPoolTrimTo(BIG, 1L << 40);
    driver.pools().memPoolDestroy(BIG);
    noted(
        "cuMemPoolTrimTo@11020(76543210fedc, 1099511627776) in 0",
        "cuMemPoolDestroy@11020(76543210fedc) in 0");
  }

  @Test
  void attributesThatAreRead_areZeroExtended() {
    library.answer(-1, -1);
    assertThat(driver.pools().memPoolGetAttribute(9, 3)).isEqualTo(0xffff_ffffL);
    assertThat(driver.pools().memPoolGetAttribute(9, 4)).isEqualTo(-1);
    assertThat(driver.pools().memPoolGetAttribute(9, 3))
        .as("after one that leaves more bytes")
        .isEqualTo(0xffff_ffffL);
    noted(
        "cuMemPoolGetAttribute@11020(9, 3) in 0",
        "cuMemPoolGetAttribute@11020(9, 4) in 0",
        "cuMemPoolGetAttribute@11020(9, 3) in 0");
  }

  @Test
  void attributesThatAreSet_haveTheWidthTheDriverReads() {
    driver.pools().memPoolSetAttribute(9, 1, 1);
    driver.pools().memPoolSetAttribute(9, 3, 0);
    driver.pools().memPoolSetAttribute(9, 4, -1);
    driver.pools().memPoolSetAttribute(9, 4, 1L << 40);
    driver.pools().memPoolSetAttribute(9, 8, 0);
    noted(
        "cuMemPoolSetAttribute@11020(9, 1, int 1) in 0",
        "cuMemPoolSetAttribute@11020(9, 3, int 0) in 0",
        "cuMemPoolSetAttribute@11020(9, 4, 18446744073709551615) in 0",
        "cuMemPoolSetAttribute@11020(9, 4, 1099511627776) in 0",
        "cuMemPoolSetAttribute@11020(9, 8, 0) in 0");
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void policyThatFitsNoInt_isInvalid(int policy) {
    assertThatThrownBy(() -> driver.pools().memPoolSetAttribute(9, policy, 1L << 32))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining(
            "cuMemPoolSetAttribute(pool=0x9, attribute=%d, value=4294967296):".formatted(policy)
                + " CUDA_ERROR_INVALID_VALUE (1)");
    noted();
  }

  @Test
  void access_isSetForSeveralPlacesInOneCall() {
    library.answer(3, 0);
    assertThat(driver.pools().memPoolGetAccess(9, 1, 1)).isEqualTo(3);
    driver.pools().memPoolSetAccess(9, 1, new int[] {1, 0, 1}, 3);
    driver.pools().memPoolSetAccess(9, 2, new int[] {0}, 1);
    driver.pools().memPoolSetAccess(9, 1, new int[] {0, 1}, 0, 3);
    assertThatThrownBy(() -> driver.pools().memPoolSetAccess(9, 1, new int[] {0, 1, 0}, 0, 3))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("2 flags for 3 locations");
    noted(
        "cuMemPoolGetAccess@11020(9, {1, 41}) in 0",
        "cuMemPoolSetAccess@11020(9, {{1, 41}, 3} {{1, 40}, 3} {{1, 41}, 3}, 3) in 0",
        "cuMemPoolSetAccess@11020(9, {{2, 0}, 1}, 1) in 0",
        "cuMemPoolSetAccess@11020(9, {{1, 40}, 0} {{1, 41}, 3}, 2) in 0");
  }

  @Test
  void memoryOfStreams_isOfTheirContext_whichTheHandlesOfAllDevicesDoNotName() {
    assertThat(driver.ordered().memAllocAsync(1, 1L << 40, 5)).isEqualTo(BIG);
    assertThat(driver.ordered().memAllocFromPoolAsync(1, 1L << 40, 9, 5)).isEqualTo(BIG);
    driver.ordered().memFreeAsync(1, BIG, 5);
    assertThat(driver.ordered().memAllocAsync(1, 1L << 40, 0)).isEqualTo(BIG);
    driver.ordered().memFreeAsync(1, BIG, 2);
    assertThat(library.calls())
        .endsWith(
            "cuMemAllocAsync@11020(1099511627776, 5) in 0",
            "cuMemAllocFromPoolAsync@11020(1099511627776, 9, 5) in 0",
            "cuMemFreeAsync@11020(76543210fedc, 5) in 0",
            "cuCtxSetCurrent@4000(c001) in 0",
            "cuMemAllocAsync@11020(1099511627776, 0) in c001",
            "cuMemFreeAsync@11020(76543210fedc, 2) in c001");
  }

  @Test
  void memoryOfSpecialStreams_isThatOfTheDevice() {
    driver.ordered().memAllocAsync(1, 8, 0);
    driver.ordered().memAllocFromPoolAsync(0, 8, 9, 1);
    driver.ordered().memFreeAsync(1, 8, 2);
    assertThat(library.calls())
        .contains(
            "cuMemAllocAsync@11020(8, 0) in c001",
            "cuMemAllocFromPoolAsync@11020(8, 9, 1) in c000",
            "cuMemFreeAsync@11020(8, 2) in c001");
  }

  @Test
  void unknownDevice_isAnError() {
    List<ThrowingCallable> calls =
        List.of(
            () -> driver.pools().deviceGetDefaultMemPool(2),
            () -> driver.pools().deviceGetMemPool(-1),
            () -> driver.pools().deviceSetMemPool(2, 9),
            () -> driver.pools().memGetMemPool(1, 2, 1),
            () -> driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 2, 0)),
            () -> driver.pools().memPoolGetAccess(9, 1, 2),
            () -> driver.pools().memPoolSetAccess(9, 1, new int[] {0, 2}, 3),
            () -> driver.ordered().memAllocAsync(2, 8, 5),
            () -> driver.ordered().memFreeAsync(-1, 8, 5));
    assertThat(calls).allSatisfy(call -> assertStatus(CudaStatus.INVALID_DEVICE, call));
    noted();
  }

  @Test
  void driverOfCuda12_lacksThePoolsOfLocations(@TempDir Path folder) {
    StubLibrary old = StubLibrary.compile(folder);
    old.version(12_090);
    try (CudaDriver cuda12 = old.open()) {
      Map<String, ThrowingCallable> calls =
          Map.of(
              "cuMemGetDefaultMemPool", () -> cuda12.pools().memGetDefaultMemPool(2, 0, 1),
              "cuMemGetMemPool", () -> cuda12.pools().memGetMemPool(2, 0, 1),
              "cuMemSetMemPool", () -> cuda12.pools().memSetMemPool(2, 0, 1, 9));
      assertThat(calls)
          .allSatisfy((name, call) -> {
            assertStatus(CudaStatus.CALL_REQUIRES_NEWER_DRIVER, call);
            assertThatThrownBy(call)
                .hasMessageContaining("the driver does not have " + name + " as of CUDA 13.0")
                .hasMessageContaining("install a newer NVIDIA driver");
          });
      old.answer(BIG, 0);
      assertThat(cuda12.pools().deviceGetMemPool(1)).isEqualTo(BIG);
    }
  }

  @Test
  void afterClose_everyCallFails() {
    driver.close();
    List<ThrowingCallable> calls =
        List.of(
            () -> driver.pools().memPoolDestroy(9),
            () -> driver.pools().memPoolTrimTo(9, 0),
            () -> driver.pools().deviceGetMemPool(0),
            () -> driver.ordered().memAllocAsync(0, 8, 5),
            () -> driver.ordered().memFreeAsync(0, 8, 5),
            () -> driver.ordered().memFreeAsync(0, 8, 2));
    assertThat(calls)
        .allSatisfy(call ->
            assertThatThrownBy(call)
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("driver ffm is closed"));
    noted();
  }
}

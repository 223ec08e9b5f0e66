package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemGranularity;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.VirtualCalls;
import java.nio.file.Path;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Calls about virtual memory reach their function with each argument and structure in place. */
class FfmVirtualCallsTest {
  private static final long BIG = 0x7654_3210_fedcL;
  private static final long BYTES = 1L << 40;
  private static final AllocationProperties SHARED =
      AllocationProperties.ofDevice(1, MemHandleType.FILE_DESCRIPTOR);

  private StubLibrary library;
  private CudaDriver driver;
  private VirtualCalls calls;

  @BeforeEach
  void open(@TempDir Path folder) {
    library = StubLibrary.compile(folder);
    driver = library.open();
    calls = driver.virtual();
    driver.devices().memGetInfo(1); // retains the context
    library.makeCurrent(0);
    library.reset();
    library.answer(BIG, 0);
  }

  @AfterEach
  void close() {
    if (driver != null) {
      driver.close();
    }
  }

  private void noted(String... expected) {
    assertThat(library.calls()).containsExactly(expected);
  }

  @Test
  void addresses_areReservedAndFreed() {
    assertThat(calls.memAddressReserve(BYTES, 1 << 21, BIG)).isEqualTo(BIG);
    calls.memAddressFree(BIG, BYTES);
    noted(
        "cuMemAddressReserve@10020(1099511627776, 2097152, 76543210fedc, 0) in 0",
        "cuMemAddressFree@10020(76543210fedc, 1099511627776) in 0");
  }

  @Test
  void memory_isMadeWithEveryPropertyAndTheRestZero() {
    assertThat(calls.memGetAllocationGranularity(SHARED, MemGranularity.RECOMMENDED))
        .isEqualTo(BIG);
    assertThat(calls.memCreate(BYTES, SHARED)).isEqualTo(BIG);
    assertThat(calls.memCreate(1, AllocationProperties.ofDevice(0, MemHandleType.NONE)))
        .isEqualTo(BIG);
    calls.memRelease(-5);
    noted(
        "cuMemGetAllocationGranularity@10020({1, 1, {1, 41}, 0}, 1) in 0",
        "cuMemCreate@10020(1099511627776, {1, 1, {1, 41}, 0}, 0) in 0",
        "cuMemCreate@10020(1, {1, 0, {1, 40}, 0}, 0) in 0",
        "cuMemRelease@10020(fffffffffffffffb) in 0");
  }

  @Test
  void memory_isMappedAndUnmapped() {
    calls.memMap(BIG, BYTES, 4096, -5);
    assertThat(calls.memRetainAllocationHandle(BIG)).isEqualTo(BIG);
    calls.memUnmap(BIG, BYTES);
    noted(
        "cuMemMap@10020(76543210fedc, 1099511627776, 4096, fffffffffffffffb, 0) in 0",
        "cuMemRetainAllocationHandle@11000(76543210fedc) in 0",
        "cuMemUnmap@10020(76543210fedc, 1099511627776) in 0");
  }

  @Test
  void access_isOfDevicesByTheirHandles() {
    int[] devices = {1, 0};
    calls.memSetAccess(BIG, BYTES, MemLocationType.DEVICE, devices, MemAccessFlags.READ_WRITE);
    calls.memSetAccess(BIG, 1, MemLocationType.HOST_NUMA, new int[] {1}, MemAccessFlags.READ);
    library.answer(3, 0);
    assertThat(calls.memGetAccess(BIG, MemLocationType.DEVICE, 1)).isEqualTo(3);
    noted(
        "cuMemSetAccess@10020(76543210fedc, 1099511627776, {{1, 41}, 3} {{1, 40}, 3}, 2) in 0",
        "cuMemSetAccess@10020(76543210fedc, 1, {{3, 1}, 1}, 1) in 0",
        "cuMemGetAccess@10020({1, 41}, 76543210fedc) in 0");
  }

  @Test
  void properties_areReadWithDevicesByNumber() {
    library.answer(MemLocationType.DEVICE, 41);
    assertThat(calls.memGetAllocationPropertiesFromHandle(BIG)).isEqualTo(SHARED);
    noted("cuMemGetAllocationPropertiesFromHandle@10020(76543210fedc) in 0");
  }

  @Test
  void properties_areReadWithNodesOfTheHostAsTheyAre() {
    library.answer(MemLocationType.HOST_NUMA, 1);
    assertThat(calls.memGetAllocationPropertiesFromHandle(BIG))
        .isEqualTo(new AllocationProperties(1, MemLocationType.HOST_NUMA, 1));
    library.answer(MemLocationType.HOST, 5);
    assertThat(calls.memGetAllocationPropertiesFromHandle(BIG))
        .isEqualTo(new AllocationProperties(1, MemLocationType.HOST, 5));
  }

  @Test
  void memory_isExportedAndImportedByADescriptorInPlaceOfAPointer() {
    library.answer(-1L << 32 | 77, -1);
    assertThat(calls.memExportToShareableHandle(BIG)).isEqualTo(77);
    library.answer(BIG, 0);
    assertThat(calls.memImportFromShareableHandle(77)).isEqualTo(BIG);
    noted(
        "cuMemExportToShareableHandle@10020(76543210fedc, 1, 0) in 0",
        "cuMemImportFromShareableHandle@10020(77, 1) in 0");
  }

  @Test
  void functionThatTheDriverLacks_saysSoWhenItIsCalled(@TempDir Path folder) {
    StubLibrary old = StubLibrary.compile(folder);
    old.hide("cuMemExportToShareableHandle");
    try (CudaDriver without = old.open()) {
      assertThatThrownBy(() -> without.virtual().memExportToShareableHandle(9))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining(
              "the driver does not have cuMemExportToShareableHandle as of CUDA 10.2");
    }
  }

  @Test
  void afterClose_everyCallFails() {
    driver.close();
    int[] devices = {0};
    List<ThrowingCallable> all =
        List.of(
            () -> calls.memGetAllocationGranularity(SHARED, 0),
            () -> calls.memAddressReserve(1, 1, 0),
            () -> calls.memAddressFree(9, 1),
            () -> calls.memCreate(1, SHARED),
            () -> calls.memMap(9, 1, 0, 9),
            () -> calls.memUnmap(9, 1),
            () -> calls.memSetAccess(9, 1, MemLocationType.DEVICE, devices, 3),
            () -> calls.memGetAccess(9, MemLocationType.DEVICE, 0),
            () -> calls.memRelease(9),
            () -> calls.memRetainAllocationHandle(9),
            () -> calls.memGetAllocationPropertiesFromHandle(9),
            () -> calls.memExportToShareableHandle(9),
            () -> calls.memImportFromShareableHandle(9));
    assertThat(all)
        .allSatisfy(call ->
            assertThatThrownBy(call)
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("driver ffm is closed"));
  }
}

package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.VirtualCalls;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

/** Memory that is mapped into reserved addresses: where it is, who may use it, how it counts. */
class VirtualMemoryTest extends SimTestBase {
  private static final long PAGE = 2 * MIB;
  private static final AllocationProperties ON_FIRST =
      AllocationProperties.ofDevice(0, MemHandleType.NONE);
  private static final CudaStatus INVALID = CudaStatus.INVALID_VALUE;

  private final VirtualCalls virtual = driver.virtual();
  private final long range = virtual.memAddressReserve(4 * PAGE, 0, 0);

  private long map(int page) {
    long handle = virtual.memCreate(PAGE, ON_FIRST);
    virtual.memMap(range + page * PAGE, PAGE, 0, handle);
    access(page, 0, MemAccessFlags.READ_WRITE);
    return handle;
  }

  private void access(int page, int device, int access) {
    virtual.memSetAccess(
        range + page * PAGE, PAGE, MemLocationType.DEVICE, new int[] {device}, access);
  }

  private int accessAt(long address) {
    return virtual.memGetAccess(address, MemLocationType.DEVICE, 0);
  }

  private void fill(long address, long bytes) {
    driver.transfers().memsetD8Async(0, address, (byte) 5, bytes, 0);
  }

  private long freeBytes() {
    return driver.devices().memGetInfo(0).freeBytes();
  }

  @Test
  void mapping_goesFromItsStartToItsEnd() {
    map(0);
    map(2);
    String notMapped = "expected: one at which memory is mapped";
    assertThat(accessAt(range)).isEqualTo(MemAccessFlags.READ_WRITE);
    assertThat(accessAt(range + PAGE - 1)).isEqualTo(MemAccessFlags.READ_WRITE);
    assertFails(INVALID, notMapped, () -> accessAt(range + PAGE));
    assertFails(INVALID, notMapped, () -> accessAt(range + 2 * PAGE - 1));
    assertFails(INVALID, notMapped, () -> accessAt(range + 3 * PAGE));
    fill(range, PAGE);
    assertThat(read(range + PAGE - 1, 1)).containsExactly(5);
    assertFails(INVALID, "2097153 bytes from offset 0", () -> fill(range, PAGE + 1));
    assertFails(INVALID, "1 bytes from offset 2097152", () -> fill(range + PAGE, 1));
    assertFails(INVALID, "nothing is mapped there", () -> fill(range + PAGE + 1, 1));
    assertFails(INVALID, "an address of live memory", () -> fill(range - PAGE, 1));
    map(1);
    fill(range + 1, 3 * PAGE - 1);
    assertThat(read(range + 3 * PAGE - 1, 1)).containsExactly(5);
  }

  @Test
  void memory_countsAsUsed_untilItIsNeitherHeldNorMapped() {
    long free = freeBytes();
    long held = map(0);
    long mapped = map(1);
    assertThat(freeBytes()).isEqualTo(free - 2 * PAGE);
    virtual.memRelease(mapped);
    virtual.memUnmap(range, PAGE);
    assertThat(freeBytes()).isEqualTo(free - 2 * PAGE);
    virtual.memRelease(held);
    assertThat(freeBytes()).isEqualTo(free - PAGE);
    virtual.memUnmap(range + PAGE, PAGE);
    assertThat(freeBytes()).isEqualTo(free);
    assertThat(driver.report()).contains("1 reserved ranges of addresses, 0 mappings");
    virtual.memAddressFree(range, 4 * PAGE);
    assertThat(driver.report()).isEmpty();
  }

  @Test
  void wrongRanges_areRefused() {
    String multiple = "expected: a multiple of 2097152";
    assertFails(INVALID, multiple, () -> virtual.memAddressReserve(PAGE + 1, 0, 0));
    assertFails(INVALID, multiple, () -> virtual.memAddressReserve(0, 0, 0));
    assertFails(INVALID, "alignment: 3", () -> virtual.memAddressReserve(PAGE, 3, 0));
    assertFails(INVALID, "address: 0x1", () -> virtual.memAddressReserve(PAGE, 0, 1));
    assertFails(INVALID, multiple, () -> virtual.memCreate(PAGE / 2, ON_FIRST));
    long handle = map(0);
    String all = "all of the memory";
    assertFails(INVALID, all, () -> virtual.memMap(range + PAGE, 2 * PAGE, 0, handle));
    assertFails(INVALID, multiple, () -> virtual.memMap(range + PAGE + 1, PAGE, 0, handle));
    assertFails(INVALID, "offset: 1", () -> virtual.memMap(range + PAGE, PAGE, 1, handle));
    assertFails(INVALID, "mapped already", () -> virtual.memMap(range, PAGE, 0, handle));
    String inOne = "in one reserved range";
    assertFails(INVALID, inOne, () -> virtual.memMap(range + 4 * PAGE, PAGE, 0, handle));
    assertFails(INVALID, inOne, () -> virtual.memMap(range - PAGE, PAGE, 0, handle));
    virtual.memMap(range + 3 * PAGE, PAGE, 0, handle);
    String whole = "whole mappings without a gap";
    assertFails(INVALID, whole, () -> virtual.memUnmap(range, PAGE / 2));
    assertFails(INVALID, whole, () -> virtual.memUnmap(range + 1, PAGE));
    assertFails(INVALID, whole, () -> virtual.memUnmap(range, 4 * PAGE));
    assertFails(INVALID, whole, () -> virtual.memUnmap(range + PAGE, PAGE));
    String exactly = "exactly one reserved range";
    assertFails(INVALID, exactly, () -> virtual.memAddressFree(range, PAGE));
    assertFails(INVALID, exactly, () -> virtual.memAddressFree(range + PAGE, 3 * PAGE));
    assertFails(INVALID, "2 mappings", () -> virtual.memAddressFree(range, 4 * PAGE));
  }

  @Test
  void eachDevice_hasItsOwnAccess_andTheHostNone() {
    map(0);
    assertThat(virtual.memGetAccess(range, MemLocationType.DEVICE, 1)).isZero();
    assertFails(INVALID, "device 1", () -> fillBySecond(range));
    access(0, 1, MemAccessFlags.READ);
    assertFails(INVALID, "device 1", () -> fillBySecond(range));
    access(0, 1, MemAccessFlags.READ_WRITE);
    fillBySecond(range);
    access(0, 0, MemAccessFlags.NONE);
    assertFails(INVALID, "device 0", () -> fill(range, 1));
    int[] host = {0};
    assertFails(
        CudaStatus.NOT_SUPPORTED,
        "the host cannot reach memory of device 0",
        () ->
            virtual.memSetAccess(
                range, PAGE, MemLocationType.HOST, host, MemAccessFlags.READ_WRITE));
    virtual.memSetAccess(range, PAGE, MemLocationType.HOST, host, MemAccessFlags.NONE);
    assertFails(INVALID, "access: 2", () -> access(0, 0, 2));
  }

  private void fillBySecond(long address) {
    driver.transfers().memsetD8Async(1, address, (byte) 1, 1, 0);
  }

  /** The two calls that change the mapping wait for no work. */
  @Test
  void queuedWork_findsNoMappingThatCameLater() {
    map(0);
    CountDownLatch goOn = hold(0, 0);
    fill(range, PAGE);
    virtual.memUnmap(range, PAGE);
    map(0);
    goOn.countDown();
    assertFails(
        CudaStatus.ILLEGAL_ADDRESS,
        "mapped anew before the queued operation ran",
        () -> driver.streams().streamSynchronize(0, 0));
  }
}

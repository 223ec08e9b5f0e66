package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.BlockListener;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.VirtualCalls;
import java.util.Map;
import java.util.function.LongConsumer;
import org.assertj.core.api.AbstractStringAssert;
import org.junit.jupiter.api.Test;

/** Memory that is mapped where addresses were reserved, a page of 1024 bytes at each place. */
class SanitizerVirtualTest extends SanitizerTestBase {
  private static final int PAGE = 1024;
  private static final AllocationProperties PLAIN =
      AllocationProperties.ofDevice(0, MemHandleType.NONE);

  private final VirtualCalls virtual = driver.virtual();
  private final long range = virtual.memAddressReserve(8 * PAGE, 0, 0);

  private long page(int number) {
    return range + (long) number * PAGE;
  }

  private long map(int page) {
    long handle = virtual.memCreate(PAGE, PLAIN);
    map(page, handle);
    return handle;
  }

  private void map(int page, long handle) {
    virtual.memMap(page(page), PAGE, 0, handle);
    access(page, 1, new int[] {0}, MemAccessFlags.READ_WRITE);
  }

  private void access(int page, int pages, int[] devices, int... access) {
    virtual.memSetAccess(page(page), (long) pages * PAGE, MemLocationType.DEVICE, devices, access);
  }

  /** Also by a question, which changes nothing. */
  @Test
  void handleThatWasReleased_isNotUsedAgain_byAnyCall() {
    Map<String, LongConsumer> calls =
        Map.of(
            "memGetAllocationPropertiesFromHandle",
            virtual::memGetAllocationPropertiesFromHandle,
            "memExportToShareableHandle",
            virtual::memExportToShareableHandle,
            "memMap",
            handle -> virtual.memMap(page(0), PAGE, 0, handle));
    calls.forEach((name, call) -> {
      long handle = virtual.memCreate(PAGE, PLAIN);
      virtual.memRelease(handle);
      call.accept(handle);
      SanitizerReport report = assertOnly(Misuse.DESTROYED_HANDLE);
      assertThat(report.message()).startsWith(name + "(");
      reports.clear();
    });
  }

  private void unmap(int page, int pages) {
    virtual.memUnmap(page(page), (long) pages * PAGE);
  }

  /** Waits for its work, as what reads does. */
  private void write(int device, int page, int pages) {
    driver.transfers().memsetD8Async(device, page(page), (byte) 1, (long) pages * PAGE, 0);
    driver.devices().ctxSynchronize(device);
  }

  private void read(int device, int page, int pages) {
    long bytes = (long) pages * PAGE;
    driver.transfers().memcpyDtoHAsync(device, HOST.asSlice(0, bytes), page(page), 0);
    driver.devices().ctxSynchronize(device);
  }

  private AbstractStringAssert<?> reported(Misuse misuse) {
    String message = assertOnly(misuse).message();
    reports.clear();
    return assertThat(message);
  }

  @Test
  void orderlyProgram_isSilent() {
    long first = map(0);
    long second = map(1);
    write(0, 0, 2);
    access(0, 2, new int[] {1}, MemAccessFlags.READ);
    read(1, 0, 2);
    unmap(1, 1);
    map(1, second);
    read(0, 0, 2);
    unmap(0, 2);
    virtual.memRelease(first);
    virtual.memRelease(second);
    virtual.memAddressFree(range, 8 * PAGE);
    driver.close();

    assertSilent();
    assertThat(tiny.live()).isEmpty();
  }

  @Test
  void eachDevice_doesNoMoreThanItMay_whereverInARange() {
    map(0);
    map(1);
    write(0, 0, 2);
    access(0, 1, new int[] {2, 1}, MemAccessFlags.READ_WRITE, MemAccessFlags.READ);
    access(1, 1, new int[] {1, 2}, MemAccessFlags.NONE);
    read(1, 0, 1);
    write(2, 0, 1);
    assertSilent();

    write(1, 0, 1);
    reported(Misuse.NO_ACCESS)
        .contains("write of 1024 bytes", "device 1 has access 1 at 0x%x".formatted(page(0)))
        .contains("(expected: 3)");
    read(1, 0, 2);
    reported(Misuse.NO_ACCESS)
        .contains("device 1 has access 0 at 0x%x (expected: 1)".formatted(page(1)));
    read(3, 0, 1);
    reported(Misuse.NO_ACCESS).contains("device 3 has access 0");
    driver.transfers().memcpyDtoHAsync(3, HOST.asSlice(0, 8), page(1) + 8, 0);
    driver.devices().ctxSynchronize(3);
    reported(Misuse.NO_ACCESS).contains("access 0 at 0x%x (expected".formatted(page(1) + 8));
    access(0, 2, new int[] {1, 3}, MemAccessFlags.READ_WRITE);
    write(1, 0, 2);
    write(3, 0, 2);
    assertSilent();
  }

  /** Each device copies its own side. */
  @Test
  void copyBetweenDevices_needsNoAccessOfEitherToTheOther() {
    map(0);
    map(1);
    access(1, 1, new int[] {0, 1}, MemAccessFlags.NONE, MemAccessFlags.READ_WRITE);
    write(0, 0, 1);
    for (int device = 0; device < 2; device++) {
      driver.transfers().memcpyPeerAsync(device, page(1), 1, page(0), 0, PAGE, 0);
      driver.devices().ctxSynchronize(device);
    }
    assertSilent();

    driver.transfers().memcpyPeerAsync(0, page(2), 1, page(0), 0, PAGE, 0);
    reported(Misuse.UNKNOWN_ADDRESS).contains("nothing is mapped at 0x%x".formatted(page(2)));
  }

  /** It may use all that is there, and no more than that. */
  @Test
  void kernel_isGivenMemoryThatIsNotAllMapped() {
    map(1);
    map(2);
    write(0, 1, 2);
    launch(page(1) + 8, 0);
    launch(page(2), 0);
    assertSilent();

    launch(page(3), 0);
    reported(Misuse.UNKNOWN_ADDRESS).contains("nothing is mapped at 0x%x".formatted(page(3)));
    unmap(1, 1);
    reported(Misuse.FREE_WHILE_IN_USE);
  }

  @Test
  void mistake_isReportedOnce_withItsFirstReason() {
    map(0);
    long stream = stream();
    driver.streams().streamDestroy(0, stream);
    driver.transfers().memsetD8Async(1, page(0), (byte) 1, PAGE, stream);

    assertOnly(Misuse.DESTROYED_HANDLE);
  }

  @Test
  void accessAndContent_areNewWithEachMapping() {
    long handle = map(0);
    write(0, 0, 1);
    access(0, 1, new int[] {1}, MemAccessFlags.READ_WRITE);
    unmap(0, 1);
    map(0, handle);
    read(0, 0, 1); // what was written is still there
    assertSilent();
    read(1, 0, 1);
    reported(Misuse.NO_ACCESS);
  }

  @Test
  void gap_isNamed_andWhatWasUnmappedIsUsedTooLate() {
    map(0);
    map(2);
    write(0, 0, 3);
    reported(Misuse.UNKNOWN_ADDRESS)
        .contains("write of 3072 bytes", "nothing is mapped at 0x%x".formatted(page(1)));
    unmap(0, 1);
    write(0, 0, 1);
    SanitizerReport late = assertOnly(Misuse.USE_AFTER_FREE);
    assertThat(late.message()).contains("0x%x was unmapped".formatted(page(0)));
    assertThat(late.sites()).extracting(Site::call).last().asString().startsWith("memUnmap(");
    reports.clear();
    map(0);
    write(0, 0, 1);
    assertSilent();
  }

  @Test
  void whatIsUnmapped_wasMapped_andNoWorkUsesIt() {
    unmap(0, 1);
    reported(Misuse.INVALID_FREE).contains("nothing is mapped at 0x%x".formatted(page(0)));
    map(0);
    map(1);
    unmap(0, 2);
    unmap(1, 1);
    reported(Misuse.DOUBLE_FREE).contains("nothing is mapped at 0x%x".formatted(page(1)));
    virtual.memMap(page(0), 2 * PAGE, 0, virtual.memCreate(2 * PAGE, PLAIN));
    unmap(1, 1);
    reported(Misuse.INVALID_FREE); // in the middle of a mapping, which is new
    map(3);
    long stream = stream();
    driver.transfers().memsetD8Async(0, page(3), (byte) 1, PAGE, stream);
    unmap(3, 1);
    reported(Misuse.FREE_WHILE_IN_USE);
  }

  /** As often as it forgets what was unmapped longest ago. */
  @Test
  void whatWasUnmappedLately_isRemembered_howeverMuchWasBefore() {
    long handle = map(0);
    for (int i = 0; i < 4097; i++) {
      unmap(0, 1);
      virtual.memMap(page(0), PAGE, 0, handle);
    }
    map(1);
    unmap(0, 1);
    unmap(1, 1);
    write(0, 0, 1);
    reported(Misuse.USE_AFTER_FREE);
    write(0, 1, 1);
    reported(Misuse.USE_AFTER_FREE);
  }

  @Test
  void whatWasUnmappedLongAgo_isForgotten() {
    map(1);
    unmap(1, 1);
    long handle = map(0);
    for (int i = 1; i < 4096; i++) {
      unmap(0, 1);
      virtual.memMap(page(0), PAGE, 0, handle);
    }
    write(0, 1, 1);
    reported(Misuse.USE_AFTER_FREE);
    unmap(0, 1);
    write(0, 1, 1);
    reported(Misuse.UNKNOWN_ADDRESS);
    write(0, 0, 1);
    reported(Misuse.USE_AFTER_FREE);
  }

  @Test
  void refusedUnmap_leavesTheMapping_andWhatIsInIt() {
    virtual.memMap(page(0), 2 * PAGE, 0, virtual.memCreate(2 * PAGE, PLAIN));
    access(0, 2, new int[] {0}, MemAccessFlags.READ_WRITE);
    write(0, 0, 2);
    tiny.refuse("memUnmap");
    assertThatExceptionOfType(CudaException.class).isThrownBy(() -> unmap(0, 2));
    tiny.refuse("nothing");

    read(0, 0, 2);
    assertSilent();
    unmap(1, 1);
    reported(Misuse.INVALID_FREE); // in its middle, and not what was unmapped already
    unmap(0, 2);
    assertSilent();
  }

  @Test
  void newMemory_isUnwritten_alsoWhereOtherMemoryWas() {
    map(0);
    read(0, 0, 1);
    reported(Misuse.UNINITIALIZED_READ);
    write(0, 0, 1);
    unmap(0, 1);
    map(0);
    read(0, 0, 1);
    reported(Misuse.UNINITIALIZED_READ);
  }

  @Test
  void memoryMappedTwice_mayBeWrittenThere() {
    long handle = map(0);
    map(1, handle);
    read(0, 1, 1);
    assertSilent();
    long more = virtual.memRetainAllocationHandle(page(0));
    map(2, more);
    read(0, 2, 1);
    assertSilent();
  }

  /** Nothing tells that both are one, so neither is new from then on. */
  @Test
  void memoryMappedTwice_isReadAtOnePlace_whatWasWrittenAtTheOther() {
    long handle = map(0);
    read(0, 0, 1);
    reported(Misuse.UNINITIALIZED_READ);
    map(1, handle);
    write(0, 1, 1);
    read(0, 0, 1);
    assertSilent();
  }

  /** By the handle that it was made with, and by one that was asked for. */
  @Test
  void memoryThatOthersHave_mayBeWrittenByThem_whereverItIsMapped() {
    int exported = virtual.memExportToShareableHandle(map(0));
    read(0, 0, 1);
    map(1);
    exported += virtual.memExportToShareableHandle(virtual.memRetainAllocationHandle(page(1)));
    read(0, 1, 1);
    map(2, virtual.memImportFromShareableHandle(exported));
    read(0, 2, 1);
    assertSilent();
    map(3);
    read(0, 3, 1);
    reported(Misuse.UNINITIALIZED_READ);
  }

  @Test
  void mappings_areLeakedUnlessTheyAreEnded() {
    long handle = map(0);
    virtual.memRelease(handle);
    assertThat(driver.leaks())
        .extracting(SanitizerReport::message)
        .anyMatch(text -> text.contains("mapping of 1024 bytes at 0x%x".formatted(range)))
        .anyMatch(text -> text.contains("block 0x%x of 8192 bytes".formatted(range)))
        .hasSize(2);
    unmap(0, 1);
    virtual.memAddressFree(range, 8 * PAGE);
    assertThat(driver.leaks()).isEmpty();
  }

  @Test
  void handleThatWasAskedFor_isLeakedWhereThatWas() {
    long handle = map(0);
    virtual.memRelease(handle);
    long again = virtual.memRetainAllocationHandle(page(0));
    assertThat(driver.leaks())
        .flatExtracting(SanitizerReport::sites)
        .extracting(Site::call)
        .contains("memRetainAllocationHandle(address=0x%x)".formatted(range));
    virtual.memRelease(again);
    unmap(0, 1);
    virtual.memAddressFree(range, 8 * PAGE);
    assertThat(driver.leaks()).isEmpty();
  }

  private void lend(int page) {
    long stream = stream();
    driver.blockListener().blockAllocated(new BlockListener.Block(1, page(page), PAGE), 0, stream);
  }

  @Test
  void memoryThatOthersHave_mayBeWrittenByThem_whoeverItIsLentTo() {
    virtual.memExportToShareableHandle(map(0));
    map(1);
    write(0, 1, 1);
    lend(0);
    lend(1);
    read(0, 0, 1);
    assertSilent();
    read(0, 1, 1);
    reported(Misuse.UNINITIALIZED_READ);
  }

  @Test
  void newMemory_isNobodyElses_whateverItsHandleWas() {
    long handle = map(0);
    virtual.memExportToShareableHandle(handle);
    unmap(0, 1);
    virtual.memRelease(handle);
    tiny.handleAgain(handle);
    assertThat(map(0)).isEqualTo(handle);
    map(1, handle);
    lend(1);
    read(0, 1, 1);

    reported(Misuse.UNINITIALIZED_READ);
  }

  /** A driver gives handles again, and what is there then was written by nobody. */
  @Test
  void newMemory_isUnwritten_whateverItsHandleWas() {
    long handle = map(0);
    write(0, 0, 1);
    unmap(0, 1);
    virtual.memRelease(handle);
    tiny.handleAgain(handle);
    assertThat(map(1)).isEqualTo(handle);
    read(0, 1, 1);

    reported(Misuse.UNINITIALIZED_READ);
  }

  /** What others could write was the memory that is gone. */
  @Test
  void newMemory_whereOthersHadTheirs_isUnwrittenForWhoeverItIsLentTo() {
    long handle = map(0);
    virtual.memExportToShareableHandle(handle);
    unmap(0, 1);
    virtual.memRelease(handle);
    assertThat(map(0)).isNotEqualTo(handle);
    lend(0);
    read(0, 0, 1);

    reported(Misuse.UNINITIALIZED_READ);
  }

  @Test
  void addressesThatAreGone_orNeverWere_areNotGivenBack() {
    virtual.memAddressFree(range, 8 * PAGE);
    assertSilent();
    assertThatThrownBy(() -> virtual.memAddressFree(range, 8 * PAGE))
        .isInstanceOf(CudaException.class);
    assertOnly(Misuse.DOUBLE_FREE);
    reports.clear();
    long other = virtual.memAddressReserve(8 * PAGE, 0, 0);
    assertThatThrownBy(() -> virtual.memAddressFree(other + PAGE, PAGE))
        .isInstanceOf(CudaException.class);
    assertOnly(Misuse.INVALID_FREE);
    reports.clear();
    long block = memory();
    virtual.memAddressFree(block, 1024); // which the tiny driver takes
    assertOnly(Misuse.INVALID_FREE);
  }

  @Test
  void accessOfTheHost_isNoneOfADevice() {
    long handle = virtual.memCreate(PAGE, PLAIN);
    virtual.memMap(page(0), PAGE, 0, handle);
    int[] numbers = {0};
    virtual.memSetAccess(page(0), PAGE, MemLocationType.HOST, numbers, MemAccessFlags.READ_WRITE);
    write(0, 0, 1);
    assertThat(reports).hasSize(1);
  }
}

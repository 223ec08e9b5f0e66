package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.driver.CudaException;
import org.junit.jupiter.api.Test;

/** What other processes share, as the sanitizer sees it. */
class SanitizerIpcTest extends SanitizerTestBase {
  private static final byte[] HANDLE = new byte[64];
  private static final int INTERPROCESS = 6;

  private final long one = stream();
  private final long other = stream();

  @Test
  void orderlyProgram_isSilent() {
    long pool = driver.memPoolImportFromShareableHandle(5);
    long address = driver.memPoolImportPointer(pool, HANDLE);
    write(address, one);
    driver.memPoolExportPointer(address);
    driver.memFreeAsync(0, address, one);
    driver.memPoolExportToShareableHandle(pool);
    driver.memPoolDestroy(pool);
    long opened = driver.ipcOpenMemHandle(0, HANDLE);
    long event = driver.ipcOpenEventHandle(0, HANDLE);
    driver.streamWaitEvent(0, one, event);
    read(opened, one);
    driver.eventRecord(0, event, one);
    driver.eventSynchronize(0, event);
    driver.ipcCloseMemHandle(0, opened);
    driver.ipcGetEventHandle(0, event);
    driver.eventDestroy(0, event);
    driver.streamDestroy(0, one);
    driver.streamDestroy(0, other);
    driver.close();

    assertSilent();
  }

  @Test
  void useAndSecondFreeOfImportedMemory_areReported() {
    long pool = driver.memPoolImportFromShareableHandle(5);
    long address = driver.memPoolImportPointer(pool, HANDLE);
    driver.memFreeAsync(0, address, one);

    write(address, one);
    assertOnly(Misuse.USE_AFTER_FREE);
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.memFreeAsync(0, address, one));
    assertThat(reports)
        .extracting(SanitizerReport::misuse)
        .containsExactly(Misuse.USE_AFTER_FREE, Misuse.DOUBLE_FREE);
  }

  @Test
  void exportsOfWhatIsGone_areReported() {
    long plain = memory();
    driver.memFree(0, plain);
    expect(() -> driver.ipcGetMemHandle(0, plain), Misuse.USE_AFTER_FREE);
    long ordered = driver.memAllocAsync(0, 64, one);
    driver.memFreeAsync(0, ordered, one);
    expect(() -> driver.memPoolExportPointer(ordered), Misuse.USE_AFTER_FREE);
    long event = driver.eventCreate(0, INTERPROCESS);
    driver.eventDestroy(0, event);
    expect(() -> driver.ipcGetEventHandle(0, event), Misuse.DESTROYED_HANDLE);
  }

  /** Whatever the driver below answers. */
  private void expect(Runnable call, Misuse misuse) {
    try {
      call.run();
    } catch (CudaException refused) {
      assertThat(refused.call()).isNotEmpty();
    }
    assertOnly(misuse);
    reports.clear();
  }

  @Test
  void useBeyondImportedMemory_isReported() {
    long address = driver.memPoolImportPointer(driver.memPoolImportFromShareableHandle(5), HANDLE);

    driver.memsetD8Async(0, address + 1, (byte) 1, 1024, one);

    assertOnly(Misuse.OUT_OF_BOUNDS);
  }

  @Test
  void destroyedImportedPool_isReported() {
    long pool = driver.memPoolImportFromShareableHandle(5);
    driver.memPoolDestroy(pool);

    driver.memPoolImportPointer(pool, HANDLE);

    assertOnly(Misuse.DESTROYED_HANDLE);
  }

  @Test
  void openedMemory_isUsableUntilItsLastClose() {
    long address = driver.ipcOpenMemHandle(0, HANDLE);
    tiny.openAgain(address);
    assertThat(driver.ipcOpenMemHandle(0, HANDLE)).isEqualTo(address);
    driver.ipcCloseMemHandle(0, address);
    write(address, one);
    driver.streamSynchronize(0, one);
    assertSilent();
    driver.ipcCloseMemHandle(0, address);

    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.ipcCloseMemHandle(0, address));
    assertOnly(Misuse.DOUBLE_FREE);
    write(address, one);
    assertThat(reports.getLast().misuse()).isEqualTo(Misuse.USE_AFTER_FREE);
  }

  @Test
  void closeUnderWork_andTheWrongFree_areReported() {
    long address = driver.ipcOpenMemHandle(0, HANDLE);
    write(address, one);
    driver.ipcCloseMemHandle(0, address);
    assertOnly(Misuse.FREE_WHILE_IN_USE);
    long second = driver.ipcOpenMemHandle(0, HANDLE);
    driver.memFree(0, second);
    assertThat(reports.getLast().misuse()).isEqualTo(Misuse.INVALID_FREE);
  }

  @Test
  void importWhoseSizeIsNotKnown_isUndone() {
    tiny.refuse("pointerGetAttribute");

    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.ipcOpenMemHandle(0, HANDLE));
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.memPoolImportPointer(1, HANDLE));

    assertThat(tiny.live()).doesNotContainValue("memory");
  }

  @Test
  void refusedClose_leavesTheMemoryOpen_asOftenAsItWas() {
    long address = driver.ipcOpenMemHandle(0, HANDLE);
    tiny.openAgain(address);
    driver.ipcOpenMemHandle(0, HANDLE);
    tiny.refuse("ipcCloseMemHandle");
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.ipcCloseMemHandle(0, address));
    tiny.refuse("nothing");

    write(address, one);
    driver.streamSynchronize(0, one);
    driver.ipcCloseMemHandle(0, address);
    write(address, one);
    driver.streamSynchronize(0, one);
    driver.ipcCloseMemHandle(0, address);

    assertSilent();
  }

  @Test
  void destroyedEvent_isReported() {
    long event = driver.ipcOpenEventHandle(0, HANDLE);
    driver.eventDestroy(0, event);

    driver.eventQuery(0, event);

    assertOnly(Misuse.DESTROYED_HANDLE);
  }

  @Test
  void workThatAnotherProcessOrders_isNoRace() {
    long address = memory();
    long ours = driver.eventCreate(0, INTERPROCESS);
    long theirs = driver.ipcOpenEventHandle(0, HANDLE);
    write(address, one);
    driver.eventRecord(0, ours, one);
    // The other process waits for ours and then records theirs.
    driver.streamWaitEvent(0, other, theirs);
    read(address, other);

    assertSilent();
  }

  @Test
  void workThatNobodyShowed_isARaceStill() {
    long address = memory();
    long theirs = driver.ipcOpenEventHandle(0, HANDLE);
    write(address, one);
    driver.streamWaitEvent(0, other, theirs);
    read(address, other);

    assertOnly(Misuse.RACE);
  }

  @Test
  void whatIsLeftOpen_isALeak() {
    driver.memPoolImportPointer(driver.memPoolImportFromShareableHandle(5), HANDLE);
    driver.ipcOpenMemHandle(0, HANDLE);
    driver.ipcOpenEventHandle(0, HANDLE);
    driver.streamDestroy(0, one);
    driver.streamDestroy(0, other);

    assertThat(driver.leaks())
        .extracting(SanitizerReport::misuse)
        .hasSize(4)
        .containsOnly(Misuse.LEAK);
  }
}

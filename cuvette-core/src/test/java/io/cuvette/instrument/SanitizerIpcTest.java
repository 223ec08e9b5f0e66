package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** What other processes share, as the sanitizer sees it. */
class SanitizerIpcTest extends SanitizerTestBase {
  private static final byte[] HANDLE = new byte[64];
  private static final int INTERPROCESS = 6;

  private final long one = stream();
  private final long other = stream();

  @Test
  void orderlyProgram_isSilent() {
    long pool = driver.sharing().memPoolImportFromShareableHandle(5);
    long address = driver.sharing().memPoolImportPointer(pool, HANDLE);
    write(address, one);
    driver.sharing().memPoolExportPointer(address);
    driver.ordered().memFreeAsync(0, address, one);
    driver.sharing().memPoolExportToShareableHandle(pool);
    driver.pools().memPoolDestroy(pool);
    long opened = driver.sharing().ipcOpenMemHandle(0, HANDLE);
    long event = driver.sharing().ipcOpenEventHandle(0, HANDLE);
    driver.streams().streamWaitEvent(0, one, event);
    read(opened, one);
    driver.events().eventRecord(0, event, one);
    driver.events().eventSynchronize(0, event);
    driver.sharing().ipcCloseMemHandle(0, opened);
    driver.sharing().ipcGetEventHandle(0, event);
    driver.events().eventDestroy(0, event);
    driver.streams().streamDestroy(0, one);
    driver.streams().streamDestroy(0, other);
    driver.close();

    assertSilent();
  }

  @Test
  void useAndSecondFreeOfImportedMemory_areReported() {
    long pool = driver.sharing().memPoolImportFromShareableHandle(5);
    long address = driver.sharing().memPoolImportPointer(pool, HANDLE);
    driver.ordered().memFreeAsync(0, address, one);

    write(address, one);
    assertOnly(Misuse.USE_AFTER_FREE);
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.ordered().memFreeAsync(0, address, one));
    assertThat(reports)
        .extracting(SanitizerReport::misuse)
        .containsExactly(Misuse.USE_AFTER_FREE, Misuse.DOUBLE_FREE);
  }

  @Test
  void exportedMemory_mayBeWrittenByOthers_andOtherMemoryMayNot() {
    long plain = memory();
    long ordered = driver.ordered().memAllocAsync(0, 1024, one);
    driver.sharing().ipcGetMemHandle(0, plain);
    driver.sharing().memPoolExportPointer(ordered);
    read(plain, one);
    read(ordered, one);
    assertSilent();
    read(memory(), one);
    assertOnly(Misuse.UNINITIALIZED_READ);
  }

  @Test
  void exportsOfWhatIsGone_areReported() {
    long plain = memory();
    driver.memory().memFree(0, plain);
    expect(() -> driver.sharing().ipcGetMemHandle(0, plain), Misuse.USE_AFTER_FREE);
    long ordered = driver.ordered().memAllocAsync(0, 64, one);
    driver.ordered().memFreeAsync(0, ordered, one);
    expect(() -> driver.sharing().memPoolExportPointer(ordered), Misuse.USE_AFTER_FREE);
    long event = driver.events().eventCreate(0, INTERPROCESS);
    driver.events().eventDestroy(0, event);
    expect(() -> driver.sharing().ipcGetEventHandle(0, event), Misuse.DESTROYED_HANDLE);
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
    long address =
        driver
            .sharing()
            .memPoolImportPointer(driver.sharing().memPoolImportFromShareableHandle(5), HANDLE);

    driver.transfers().memsetD8Async(0, address + 1, (byte) 1, 1024, one);

    assertOnly(Misuse.OUT_OF_BOUNDS);
  }

  @Test
  void importOfAnotherSize_takesThePlaceOfWhatWasAtItsAddress() {
    long pool = driver.sharing().memPoolImportFromShareableHandle(5);
    long address = driver.sharing().memPoolImportPointer(pool, HANDLE);
    write(address, one);
    assertSilent();
    tiny.openAgain(address);
    tiny.importOf(512);
    assertThat(driver.sharing().memPoolImportPointer(pool, HANDLE)).isEqualTo(address);

    write(address, one);

    assertOnly(Misuse.OUT_OF_BOUNDS);
  }

  /** How it is freed is that of the last import, also if it is as large as the one before. */
  @Test
  void importOfAnotherKind_takesThePlaceOfWhatWasAtItsAddress() {
    long pool = driver.sharing().memPoolImportFromShareableHandle(5);
    long address = driver.sharing().ipcOpenMemHandle(0, HANDLE);
    tiny.openAgain(address);
    assertThat(driver.sharing().memPoolImportPointer(pool, HANDLE)).isEqualTo(address);
    driver.ordered().memFreeAsync(0, address, one);
    assertSilent();
    long second = driver.sharing().memPoolImportPointer(pool, HANDLE);
    tiny.openAgain(second);
    assertThat(driver.sharing().ipcOpenMemHandle(0, HANDLE)).isEqualTo(second);
    driver.sharing().ipcCloseMemHandle(0, second);
    assertSilent();
  }

  @Test
  void importedMemory_mayBeWrittenByOthers_whileWorkOfThisProcessReadsIt() {
    long pool = driver.sharing().memPoolImportFromShareableHandle(5);
    long address = driver.sharing().memPoolImportPointer(pool, HANDLE);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment view = driver.memory().hostView(0, address, 1024, arena);
      driver.transfers().memcpyAsync(0, memory(), address, 1024, one);
      view.set(ValueLayout.JAVA_BYTE, 9, (byte) 3); // by whom the sanitizer cannot know
      driver.streams().streamSynchronize(0, one);
    }
    assertSilent();
  }

  /** Others may have changed what work read that was queued before they got the memory. */
  @Test
  void memoryThatIsExported_whileWorkReadsIt_mayBeWrittenByOthersToo() {
    for (boolean exported : new boolean[] {true, false}) {
      long address = memory();
      write(address, one);
      driver.streams().streamSynchronize(0, one);
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment view = driver.memory().hostView(0, address, 1024, arena);
        driver.transfers().memcpyAsync(0, memory(), address, 1024, one);
        if (exported) {
          driver.sharing().ipcGetMemHandle(0, address);
        }
        view.set(ValueLayout.JAVA_BYTE, 9, (byte) 3);
        driver.streams().streamSynchronize(0, one);
      }
      assertThat(reports)
          .extracting(SanitizerReport::misuse)
          .isEqualTo(exported ? List.of() : List.of(Misuse.HOST_RACE));
    }
  }

  @Test
  void destroyedImportedPool_isReported() {
    long pool = driver.sharing().memPoolImportFromShareableHandle(5);
    driver.pools().memPoolDestroy(pool);

    driver.sharing().memPoolImportPointer(pool, HANDLE);

    assertOnly(Misuse.DESTROYED_HANDLE);
  }

  @Test
  void openedMemory_isUsableUntilItsLastClose() {
    long address = driver.sharing().ipcOpenMemHandle(0, HANDLE);
    tiny.openAgain(address);
    assertThat(driver.sharing().ipcOpenMemHandle(0, HANDLE)).isEqualTo(address);
    driver.sharing().ipcCloseMemHandle(0, address);
    write(address, one);
    driver.streams().streamSynchronize(0, one);
    assertSilent();
    driver.sharing().ipcCloseMemHandle(0, address);

    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.sharing().ipcCloseMemHandle(0, address));
    assertOnly(Misuse.DOUBLE_FREE);
    write(address, one);
    assertThat(reports.getLast().misuse()).isEqualTo(Misuse.USE_AFTER_FREE);
  }

  /** Until the last close the memory stays. */
  @Test
  void closeUnderWork_ofMemoryThatWasOpenedTwice_isNamedAtTheLastOne() {
    long address = driver.sharing().ipcOpenMemHandle(0, HANDLE);
    tiny.openAgain(address);
    assertThat(driver.sharing().ipcOpenMemHandle(0, HANDLE)).isEqualTo(address);
    write(address, one);
    driver.sharing().ipcCloseMemHandle(0, address);
    assertSilent();
    driver.sharing().ipcCloseMemHandle(0, address);
    assertOnly(Misuse.FREE_WHILE_IN_USE);
  }

  /** It is the same memory, with all that was done to it. */
  @Test
  void memoryThatIsOpenedAgain_isUsedAsBefore() {
    long address = driver.sharing().ipcOpenMemHandle(0, HANDLE);
    write(address, one);
    tiny.openAgain(address);
    assertThat(driver.sharing().ipcOpenMemHandle(0, HANDLE)).isEqualTo(address);
    write(address, other);
    assertOnly(Misuse.RACE);
  }

  @Test
  void refusedCloseOfWhatIsNotOpen_opensNothing() {
    long address = driver.sharing().ipcOpenMemHandle(0, HANDLE);
    driver.sharing().ipcCloseMemHandle(0, address);
    for (int i = 0; i < 2; i++) {
      assertThatExceptionOfType(CudaException.class)
          .isThrownBy(() -> driver.sharing().ipcCloseMemHandle(0, address));
      assertOnly(Misuse.DOUBLE_FREE);
      reports.clear();
    }
    tiny.openAgain(address);
    assertThat(driver.sharing().ipcOpenMemHandle(0, HANDLE)).isEqualTo(address);
    driver.sharing().ipcCloseMemHandle(0, address);
    assertSilent();
    write(address, one);
    assertOnly(Misuse.USE_AFTER_FREE);
  }

  @Test
  void closeUnderWork_andTheWrongFree_areReported() {
    long address = driver.sharing().ipcOpenMemHandle(0, HANDLE);
    write(address, one);
    driver.sharing().ipcCloseMemHandle(0, address);
    assertOnly(Misuse.FREE_WHILE_IN_USE);
    long second = driver.sharing().ipcOpenMemHandle(0, HANDLE);
    driver.memory().memFree(0, second);
    assertThat(reports.getLast().misuse()).isEqualTo(Misuse.INVALID_FREE);
  }

  @Test
  void importWhoseSizeIsNotKnown_isUndone() {
    tiny.refuse("pointerGetAttribute");

    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.sharing().ipcOpenMemHandle(0, HANDLE));
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.sharing().memPoolImportPointer(1, HANDLE));

    assertThat(tiny.live()).doesNotContainValue("memory");
  }

  /** The first failure is the one that says why, and both are told. */
  @Test
  void importThatCannotBeUndoneEither_isBothFailures() {
    Set<String> refused = Set.of("pointerGetAttribute", "ipcCloseMemHandle", "memFree");
    SanitizerDriver refusing =
        SanitizerDriver.reporting(
            DriverProxy.of((method, arguments) -> {
              if (refused.contains(method.getName())) {
                throw new CudaException(CudaStatus.UNKNOWN.code(), method.getName());
              }
              return DriverProxy.forward(tiny.driver, method, arguments);
            }),
            reports::add);
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> refusing.sharing().ipcOpenMemHandle(0, HANDLE))
        .withMessageContaining("pointerGetAttribute")
        .satisfies(e ->
            assertThat(e.getSuppressed()).singleElement().asString().contains("ipcCloseMemHandle"));
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> refusing.sharing().memPoolImportPointer(1, HANDLE))
        .withMessageContaining("pointerGetAttribute")
        .satisfies(
            e -> assertThat(e.getSuppressed()).singleElement().asString().contains("memFree"));
  }

  @Test
  void refusedClose_leavesTheMemoryOpen_asOftenAsItWas() {
    long address = driver.sharing().ipcOpenMemHandle(0, HANDLE);
    tiny.openAgain(address);
    driver.sharing().ipcOpenMemHandle(0, HANDLE);
    tiny.refuse("ipcCloseMemHandle");
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.sharing().ipcCloseMemHandle(0, address));
    tiny.refuse("nothing");

    write(address, one);
    driver.streams().streamSynchronize(0, one);
    driver.sharing().ipcCloseMemHandle(0, address);
    write(address, one);
    driver.streams().streamSynchronize(0, one);
    driver.sharing().ipcCloseMemHandle(0, address);

    assertSilent();
  }

  @Test
  void destroyedEvent_isReported() {
    long event = driver.sharing().ipcOpenEventHandle(0, HANDLE);
    driver.events().eventDestroy(0, event);

    driver.events().eventQuery(0, event);

    assertOnly(Misuse.DESTROYED_HANDLE);
  }

  @Test
  void workThatAnotherProcessOrders_isNoRace() {
    long address = memory();
    long ours = driver.events().eventCreate(0, INTERPROCESS);
    long theirs = driver.sharing().ipcOpenEventHandle(0, HANDLE);
    write(address, one);
    driver.events().eventRecord(0, ours, one);
    // The other process waits for ours and then records theirs.
    driver.streams().streamWaitEvent(0, other, theirs);
    read(address, other);

    assertSilent();
  }

  @Test
  void workThatNobodyShowed_isARaceStill() {
    long address = memory();
    long theirs = driver.sharing().ipcOpenEventHandle(0, HANDLE);
    write(address, one);
    driver.streams().streamWaitEvent(0, other, theirs);
    read(address, other);

    assertOnly(Misuse.RACE);
  }

  /** An event of this process alone shows nothing to others. */
  @Test
  void workBehindAnEventOfThisProcess_isARaceStill() {
    long address = memory();
    long theirs = driver.sharing().ipcOpenEventHandle(0, HANDLE);
    write(address, one);
    driver.events().eventRecord(0, event(), one);
    driver.streams().streamWaitEvent(0, other, theirs);
    read(address, other);

    assertOnly(Misuse.RACE);
  }

  /** What others were shown orders nothing by an event of this process. */
  @Test
  void workThatOthersWereShown_isARaceStill_behindAnotherEvent() {
    long address = memory();
    write(address, one);
    driver.events().eventRecord(0, driver.events().eventCreate(0, INTERPROCESS), one);
    long event = event();
    driver.events().eventRecord(0, event, other);
    long third = stream();
    driver.streams().streamWaitEvent(0, third, event);
    read(address, third);

    assertOnly(Misuse.RACE);
  }

  /** The other process may have told so, when it was past the event. */
  @Test
  void workBeforeAnEventThatOthersSee_isKnownToBeDone_onceThatHasPassed() {
    long address = memory();
    long ours = driver.events().eventCreate(0, INTERPROCESS);
    byte[] _ = driver.sharing().ipcGetEventHandle(0, ours);
    write(address, one);
    driver.events().eventRecord(0, ours, one);
    tiny.idle.set(false);
    read(address, other);
    assertOnly(Misuse.RACE);
    reports.clear();

    tiny.idle.set(true);
    read(address, stream());
    assertSilent();
    long later = memory();
    write(later, one);
    read(later, other);
    assertOnly(Misuse.RACE);
    reports.clear();

    driver.events().eventRecord(0, ours, one);
    driver.blockListener().hostAccess(later, 1, false);
    assertSilent();
  }

  /** It may be behind an event of ours or not: what is not done goes on to write. */
  @Test
  void workThatOthersSee_isNotKnownToBeDone_withAnEventOfTheirs() {
    MemorySegment host = driver.memory().memHostAlloc(0, 1024, 0).fill((byte) 1);
    long address = memory();
    write(address, one);
    driver.transfers().memcpyAsync(0, host.address(), address, 1024, one);
    long ours = driver.events().eventCreate(0, INTERPROCESS);
    byte[] _ = driver.sharing().ipcGetEventHandle(0, ours);
    driver.events().eventRecord(0, ours, one);
    long theirs = driver.sharing().ipcOpenEventHandle(0, HANDLE);
    tiny.idle.set(false);
    driver.events().eventSynchronize(0, theirs);
    driver.transfers().memcpyAsync(0, address, host.address(), 1024, one);
    host.fill((byte) 2); // as the first copy does now
    driver.streams().streamSynchronize(0, one);
    assertSilent();
  }

  /** Others have told by theirs that they are past ours. */
  @Test
  void memoryThatOthersAreDoneWith_isFreed_behindAnEventOfTheirs() {
    long address = memory();
    write(address, one);
    long ours = driver.events().eventCreate(0, INTERPROCESS);
    byte[] _ = driver.sharing().ipcGetEventHandle(0, ours);
    driver.events().eventRecord(0, ours, one);
    long theirs = driver.sharing().ipcOpenEventHandle(0, HANDLE);
    driver.events().eventSynchronize(0, theirs);
    driver.memory().memFree(0, address);
    long next = memory();
    write(next, one);
    driver.events().eventRecord(0, ours, one);
    assertThat(driver.events().eventQuery(0, theirs)).isTrue();
    driver.memory().memFree(0, next);
    assertSilent();
  }

  @Test
  void eventThatIsDestroyedOrCaptured_isNotAskedFor() {
    long address = memory();
    long ours = driver.events().eventCreate(0, INTERPROCESS);
    byte[] _ = driver.sharing().ipcGetEventHandle(0, ours);
    write(address, one);
    driver.captures().streamBeginCapture(0, other, 2);
    driver.events().eventRecord(0, ours, other);
    tiny.refuse("eventQuery");
    write(address, one);
    long graph = driver.captures().streamEndCapture(0, other);
    driver.graphs().graphDestroy(graph);
    driver.events().eventRecord(0, ours, one);
    driver.events().eventDestroy(0, ours);
    write(address, one);
    assertSilent();
    read(address, other);
    assertOnly(Misuse.RACE);
  }

  @Test
  void whatIsLeftOpen_isALeak() {
    driver
        .sharing()
        .memPoolImportPointer(driver.sharing().memPoolImportFromShareableHandle(5), HANDLE);
    driver.sharing().ipcOpenMemHandle(0, HANDLE);
    driver.sharing().ipcOpenEventHandle(0, HANDLE);
    driver.streams().streamDestroy(0, one);
    driver.streams().streamDestroy(0, other);

    assertThat(driver.leaks())
        .extracting(SanitizerReport::misuse)
        .hasSize(4)
        .containsOnly(Misuse.LEAK);
  }
}

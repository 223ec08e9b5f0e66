package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.driver.CudaException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class SanitizerOrderTest extends SanitizerTestBase {
  private final long first = stream();
  private final long second = stream();
  private final long block = memory();

  @Test
  void writeAfterWrite_withoutOrder_isARace() {
    write(block, first);
    write(block, second);

    SanitizerReport race = assertOnly(Misuse.RACE);
    assertThat(race.message())
        .contains("write of 1024 bytes")
        .contains("is not ordered after the write on stream 0x%x".formatted(first));
    assertThat(race.sites()).hasSize(3);
    assertThat(race.sites().get(1).call()).startsWith("memsetD8Async(");
  }

  @Test
  void readAfterWrite_andWriteAfterRead_areRaces_butReadAfterReadIsNone() {
    long other = memory();
    write(block, first);
    read(block, second);
    assertOnly(Misuse.RACE);
    reports.clear();

    write(other, first);
    driver.streams().streamSynchronize(0, first);
    read(other, first);
    read(other, second);
    assertSilent();
    write(other, first);
    assertOnly(Misuse.RACE);
  }

  /** Of each stream the last read of a byte counts, also where others read it since. */
  @Test
  void readsOfManyStreams_allCount_untilEachIsWaitedFor() {
    write(block, first);
    driver.streams().streamSynchronize(0, first);
    List<Long> readers = new ArrayList<>();
    for (int i = 0; i < 6; i++) {
      long reader = driver.streams().streamCreateWithPriority(0, 1, 0);
      readers.add(reader);
      for (int part = 0; part < 3; part++) {
        read(block, reader);
      }
    }
    for (long reader : readers) {
      driver.transfers().memsetD8Async(0, block, (byte) 1, 1, first);
      assertOnly(Misuse.RACE);
      reports.clear();
      driver.streams().streamSynchronize(0, first);
      driver.streams().streamSynchronize(0, reader);
    }
    write(block, first);
    assertSilent();
    readers.forEach(reader -> driver.streams().streamDestroy(0, reader));
  }

  @Test
  void disjointRangesOfOneBlock_areNoRace_overlappingOnesAre() {
    driver.transfers().memsetD8Async(0, block, (byte) 1, 512, first);
    driver.transfers().memsetD8Async(0, block + 512, (byte) 1, 512, second);
    assertSilent();

    driver.transfers().memsetD8Async(0, block + 511, (byte) 1, 1, second);
    assertOnly(Misuse.RACE);
  }

  @Test
  void race_isToTheLastOfTheWritesThatAreInOrder() {
    long event = event();
    write(block, first);
    driver.events().eventRecord(0, event, first);
    driver.streams().streamWaitEvent(0, second, event);
    write(block, second);
    write(block, stream());

    assertThat(assertOnly(Misuse.RACE).message())
        .contains("is not ordered after the write on stream 0x%x".formatted(second));
  }

  /** However many there are: alike are only those of one stream. */
  @Test
  void bytesOfTwoStreamsInTurn_areEachThoseOfOne() {
    for (int i = 0; i < 1024; i++) {
      driver.transfers().memsetD8Async(0, block + i, (byte) 1, 1, i % 2 == 0 ? first : second);
    }
    driver.streams().streamSynchronize(0, first);
    assertSilent();
    for (int i = 1; i < 1024; i += 2) {
      driver.transfers().memsetD8Async(0, block + i, (byte) 1, 1, first);
    }
    assertThat(reports).hasSize(512).allMatch(report -> report.misuse() == Misuse.RACE);
  }

  @Test
  void kernel_mayUseABlockFromItsArgumentToTheEnd() {
    launch(block + 512, first);
    driver.transfers().memsetD8Async(0, block, (byte) 1, 512, second);
    assertSilent();

    driver.transfers().memsetD8Async(0, block + 1023, (byte) 1, 1, second);
    assertOnly(Misuse.RACE);
  }

  /** A kernel that got the address of memory that no part has uses none of the parts. */
  @Test
  void kernel_usesNoPartBehindAGap() {
    driver.blockAllocated(block + 512, 512);
    driver.transfers().memsetD8Async(0, block + 512, (byte) 1, 512, second);
    launch(block, first);

    assertThat(assertOnly(Misuse.UNKNOWN_ADDRESS).message()).contains("use of 1 bytes at");
  }

  @Test
  void hostMemoryThatAKernelGot_isUnwrittenOnceTheKernelIsDoneAndLeftItSo() {
    long pinned = driver.memory().memHostAlloc(0, 1024, 0).address();
    launch(pinned, first);
    read(pinned, first);
    assertSilent();

    driver.streams().streamSynchronize(0, first);
    read(pinned, first);
    assertOnly(Misuse.UNINITIALIZED_READ);
  }

  @Test
  void freeingPlainMemoryThatNobodyUsed_isAWaitForItsDevice() {
    write(block, first);
    driver.memory().memFree(0, driver.memory().memAlloc(0, 1));
    write(block, second);
    assertSilent();
  }

  @Test
  void freeingPlainMemoryThatWasUsed_isNone() {
    long used = memory();
    write(used, second);
    driver.streams().streamSynchronize(0, second);
    write(block, first);
    driver.memory().memFree(0, used);
    write(block, second);
    assertOnly(Misuse.RACE);
  }

  @Test
  void sameStream_isInOrder() {
    write(block, first);
    read(block, first);
    write(block, first);

    assertSilent();
  }

  @Test
  void waitForAnEvent_orders() {
    long event = event();
    write(block, first);
    driver.events().eventRecord(0, event, first);
    driver.streams().streamWaitEvent(0, second, event);
    write(block, second);

    assertSilent();
  }

  @Test
  void order_isTransitiveOverAThirdStream() {
    long third = stream();
    long event = event();
    write(block, first);
    driver.events().eventRecord(0, event, first);
    driver.streams().streamWaitEvent(0, third, event);
    driver.events().eventRecord(0, event, third);
    driver.streams().streamWaitEvent(0, second, event);
    write(block, second);

    assertSilent();
  }

  @Test
  void eventRecordedTooEarly_doesNotOrderLaterWork() {
    long event = event();
    driver.events().eventRecord(0, event, first);
    write(block, first);
    driver.streams().streamWaitEvent(0, second, event);
    write(block, second);

    assertOnly(Misuse.RACE);
  }

  @Test
  void waitForAnEventNeverRecorded_ordersNothing() {
    write(block, first);
    driver.streams().streamWaitEvent(0, second, event());
    write(block, second);

    assertOnly(Misuse.RACE);
  }

  @Test
  void waitTakesTheLastRecordBeforeIt_notLaterOnes() {
    long event = event();
    driver.events().eventRecord(0, event, first);
    driver.streams().streamWaitEvent(0, second, event);
    write(block, first);
    driver.events().eventRecord(0, event, first);
    write(block, second);

    assertOnly(Misuse.RACE);
  }

  @Test
  void hostThatWaited_ordersAllLaterWork() {
    long event = event();
    write(block, first);
    driver.streams().streamSynchronize(0, first);
    write(block, second);
    driver.events().eventRecord(0, event, second);
    driver.events().eventSynchronize(0, event);
    write(block, first);
    driver.devices().ctxSynchronize(0);
    write(block, second);

    assertSilent();
  }

  @Test
  void hostThatWaitedForTheOtherStream_ordersNothing() {
    write(block, first);
    driver.streams().streamSynchronize(0, second);
    driver.devices().ctxSynchronize(1);
    write(block, second);

    assertOnly(Misuse.RACE);
  }

  @Test
  void queryThatSaysDone_orders_oneThatSaysBusy_doesNot() {
    write(block, first);
    assertThat(driver.streams().streamQuery(0, first)).isTrue();
    write(block, second);
    assertSilent();

    tiny.idle.set(false);
    assertThat(driver.streams().streamQuery(0, second)).isFalse();
    write(block, first);
    assertOnly(Misuse.RACE);
  }

  @Test
  void eventQueryAndElapsedTime_order() {
    long event = event();
    write(block, first);
    driver.events().eventRecord(0, event, first);
    assertThat(driver.events().eventQuery(0, event)).isTrue();
    write(block, second);
    driver.events().eventRecord(0, event, second);
    driver.events().eventElapsedTime(0, event, event);
    write(block, first);

    assertSilent();
  }

  @Test
  void hostFunctionThatRan_saysThatEarlierWorkIsDone() {
    write(block, first);
    driver.streams().launchHostFunc(0, first, () -> {});
    write(block, second);

    assertSilent();
  }

  @Test
  void legacyDefaultStream_ordersBlockingStreams_butNotTheOthers() {
    long blocking = blockingStream();
    write(block, blocking);
    write(block, 0);
    write(block, blocking);
    write(block, 1);
    write(block, 2);
    assertSilent();

    write(block, first);
    assertOnly(Misuse.RACE);
  }

  @Test
  void nonBlockingStream_andTheDefaultStream_areNotInOrder() {
    write(block, 0);
    write(block, first);
    assertOnly(Misuse.RACE);
    reports.clear();

    long other = memory();
    write(other, second);
    write(other, 0);
    assertOnly(Misuse.RACE);
  }

  @Test
  void blockingStreams_areNotOrderedAmongThemselves() {
    long blocking = blockingStream();
    write(block, blocking);
    write(block, blockingStream());

    assertOnly(Misuse.RACE);
  }

  @Test
  void blockingStreams_areNotOrderedAmongThemselves_byTheDefaultStreamBeforeThem() {
    write(memory(), 0);
    long blocking = blockingStream();
    write(block, blocking);
    write(block, blockingStream());

    assertOnly(Misuse.RACE);
  }

  @Test
  void freeWhileWorkMayRun_isReported_alsoOfReads() {
    write(block, second);
    driver.streams().streamSynchronize(0, second);
    read(block, first);

    driver.memory().memFree(0, block);

    SanitizerReport report = assertOnly(Misuse.FREE_WHILE_IN_USE);
    assertThat(report.message()).contains("may still be used by work on stream");
    assertThat(report.sites())
        .extracting(Site::call)
        .satisfiesExactly(
            free -> assertThat(free).startsWith("memFree("),
            use -> assertThat(use).startsWith("memcpyDtoHAsync("),
            allocation -> assertThat(allocation).startsWith("memAlloc("));
  }

  @Test
  void freeAfterWaitingForTheLastUser_isSilent() {
    long event = event();
    write(block, first);
    driver.events().eventRecord(0, event, first);
    driver.streams().streamWaitEvent(0, second, event);
    read(block, second);
    driver.streams().streamSynchronize(0, second);
    driver.memory().memFree(0, block);

    assertSilent();
  }

  @Test
  void workOfADestroyedStream_staysUnfinishedUntilTheDeviceWasWaitedFor() {
    long other = memory();
    write(block, first);
    write(other, first);
    driver.streams().streamDestroy(0, first);
    driver.memory().memFree(0, block);
    assertOnly(Misuse.FREE_WHILE_IN_USE);
    reports.clear();

    driver.devices().ctxSynchronize(0);
    driver.memory().memFree(0, other);
    assertSilent();
  }

  @Test
  void workThatTheDriverRefused_isNotInUse() {
    Faults faults = Faults.at(tiny.driver, 2);
    SanitizerDriver above = SanitizerDriver.reporting(faults.driver(), reports::add);
    long address = above.memory().memAlloc(0, 64);
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> above.transfers().memsetD8Async(0, address, (byte) 1, 64, 0));
    above.memory().memFree(0, address);

    assertSilent();
  }

  @Test
  void prefetch_isAUse_butNoRace() {
    long managed = driver.memory().memAllocManaged(0, 1024, 1).address();
    write(managed, first);
    driver.memory().memPrefetchAsync(0, managed, 1024, 1, 0, second);
    driver.streams().streamSynchronize(0, first);
    assertSilent();

    driver.memory().memFree(0, managed);
    assertOnly(Misuse.FREE_WHILE_IN_USE);
  }

  @Test
  void capturedWork_isNotRun_andTheCaptureSpreadsOverEvents() {
    long event = event();
    driver.captures().streamBeginCapture(0, first, 0);
    write(block, first);
    driver.events().eventRecord(0, event, first);
    driver.streams().streamWaitEvent(0, second, event);
    write(block, second);
    driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, first));
    driver.memory().memFree(0, block);
    assertSilent();

    long other = memory();
    write(other, first);
    write(other, second);
    assertOnly(Misuse.RACE);
  }

  @Test
  void longProgram_staysSilent() {
    for (int i = 0; i < 10_000; i++) {
      long stream = stream();
      write(block, stream);
      driver.streams().streamSynchronize(0, stream);
      driver.streams().streamDestroy(0, stream);
    }

    assertSilent();
  }

  @Test
  void write_isARaceWithTheReaderThatItsStreamDidNotWaitFor() {
    long event = event();
    long writer = stream();
    write(block, writer);
    driver.streams().streamSynchronize(0, writer);
    read(block, first);
    read(block, second);
    driver.events().eventRecord(0, event, second);
    driver.streams().streamWaitEvent(0, writer, event);
    write(block, writer);

    assertThat(assertOnly(Misuse.RACE).message())
        .contains("is not ordered after the read on stream 0x%x".formatted(first));
  }
}

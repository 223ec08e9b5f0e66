package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.support.Latches;
import java.lang.foreign.MemorySegment;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Events, shared with another simulated driver. */
@Timeout(60)
class SimEventSharingTest extends SimSharingBase {
  private static final long POLL_NANOS = 50_000;

  private final long event = exporter.events().eventCreate(0, INTERPROCESS);
  private final long opened =
      importer.sharing().ipcOpenEventHandle(0, exporter.sharing().ipcGetEventHandle(0, event));
  private final long pool = pool(DEVICE);
  private final long ours = allocate(pool, 4);
  private final long theirs =
      importer
          .sharing()
          .memPoolImportPointer(imported(pool), exporter.sharing().memPoolExportPointer(ours));

  /** Asks until it is so, as a program does that has nothing else to do. */
  private static void awaitDone(io.cuvette.sim.SimulatedDriver driver, long event) {
    while (!driver.events().eventQuery(0, event)) {
      assertThat(Thread.currentThread().isInterrupted()).as("out of time").isFalse();
      LockSupport.parkNanos(POLL_NANOS);
    }
  }

  @Test
  void eventNeverRecorded_isDone() {
    assertThat(importer.events().eventQuery(0, opened)).isTrue();
    importer.events().eventSynchronize(0, opened);
    importer.streams().streamWaitEvent(0, in, opened);
    importer.streams().streamSynchronize(0, in);
  }

  @Test
  void record_comesThoughNobodyWaitsInItsProcess() {
    exporter.transfers().memsetD8Async(0, ours, (byte) 3, 4, out);
    exporter.events().eventRecord(0, event, out);
    awaitDone(importer, opened);
    assertThat(read(importer, theirs)).isEqualTo((byte) 3);
  }

  @Test
  void recordsOneAfterTheOther_comeThoughNobodyWaitsInTheirProcess() {
    for (int i = 0; i < 40; i++) {
      exporter.transfers().memsetD8Async(0, ours, (byte) i, 4, out);
      exporter.events().eventRecord(0, event, out);
      awaitDone(importer, opened);
      assertThat(read(importer, theirs)).isEqualTo((byte) i);
    }
  }

  @Test
  void stream_waitsForTheRecordOfTheOtherProcess() {
    CountDownLatch go = new CountDownLatch(1);
    exporter.streams().launchHostFunc(0, out, () -> Latches.await(go));
    exporter.transfers().memsetD8Async(0, ours, (byte) 1, 4, out);
    exporter.events().eventRecord(0, event, out);
    importer.streams().streamWaitEvent(0, in, opened);
    importer.transfers().memsetD8Async(0, theirs, (byte) 2, 1, in);
    assertThat(importer.streams().streamQuery(0, in)).isFalse();
    assertThat(importer.events().eventQuery(0, opened)).isFalse();
    go.countDown();
    importer.streams().streamSynchronize(0, in);
    assertThat(read(importer, theirs, 2)).containsExactly(2, 1);
  }

  @Test
  void wait_isForTheRecordThatWasNewestThen_notForALaterOne() {
    CountDownLatch go = new CountDownLatch(1);
    exporter.events().eventRecord(0, event, out);
    awaitDone(importer, opened);
    importer.streams().streamWaitEvent(0, in, opened);
    exporter.streams().launchHostFunc(0, out, () -> Latches.await(go));
    exporter.events().eventRecord(0, event, out);
    importer.streams().streamSynchronize(0, in);
    assertThat(importer.events().eventQuery(0, opened)).isFalse();
    go.countDown();
    importer.events().eventSynchronize(0, opened);
    assertThat(importer.events().eventQuery(0, opened)).isTrue();
  }

  @Test
  void laterRecordOfAnotherStream_doesNotEndAnEarlierWait() {
    CountDownLatch go = new CountDownLatch(1);
    long slow = stream(exporter);
    exporter.streams().launchHostFunc(0, slow, () -> Latches.await(go));
    exporter.events().eventRecord(0, event, slow);
    importer.streams().streamWaitEvent(0, in, opened);
    exporter.events().eventRecord(0, event, out);
    importer.events().eventSynchronize(0, opened);
    assertThat(importer.streams().streamQuery(0, in)).as("waits for the first").isFalse();
    go.countDown();
    importer.streams().streamSynchronize(0, in);
  }

  @Test
  void eitherProcess_records() {
    importer.transfers().memsetD8Async(0, theirs, (byte) 5, 4, in);
    importer.events().eventRecord(0, opened, in);
    exporter.streams().streamWaitEvent(0, out, event);
    exporter.transfers().memsetD8Async(0, ours, (byte) 6, 1, out);
    exporter.events().eventRecord(0, event, out);
    importer.streams().streamWaitEvent(0, in, opened);
    importer.transfers().memsetD8Async(0, theirs + 3, (byte) 7, 1, in);
    importer.streams().streamSynchronize(0, in);
    assertThat(read(importer, theirs, 4)).containsExactly(6, 5, 5, 7);
  }

  @Test
  void manyTurns_keepTheirOrder() {
    long back = importer.events().eventCreate(0, INTERPROCESS);
    long backThere =
        exporter.sharing().ipcOpenEventHandle(0, importer.sharing().ipcGetEventHandle(0, back));
    for (int turn = 0; turn < 100; turn++) {
      exporter.transfers().memsetD8Async(0, ours, (byte) turn, 4, out);
      exporter.events().eventRecord(0, event, out);
      importer.streams().streamWaitEvent(0, in, opened);
      importer.transfers().memcpyAsync(0, theirs + 1, theirs, 1, in);
      importer.events().eventRecord(0, back, in);
      exporter.streams().streamWaitEvent(0, out, backThere);
      exporter.transfers().memcpyAsync(0, ours + 2, ours + 1, 1, out);
    }
    exporter.streams().streamSynchronize(0, out);
    assertThat(read(exporter, ours, 4)).containsExactly(99, 99, 99, 99);
    exporter.events().eventDestroy(0, backThere);
  }

  @Test
  void moreRecordsThanTheRingHolds_areAllMade() {
    for (int i = 0; i < 3000; i++) {
      exporter.events().eventRecord(0, event, out);
    }
    importer.events().eventSynchronize(0, opened);
    assertThat(importer.events().eventQuery(0, opened)).isTrue();
  }

  @Test
  void recordFromBeforeTheExport_countsToo() {
    CountDownLatch go = new CountDownLatch(1);
    long early = exporter.events().eventCreate(0, INTERPROCESS);
    exporter.streams().launchHostFunc(0, out, () -> Latches.await(go));
    exporter.events().eventRecord(0, early, out);
    long seen =
        importer.sharing().ipcOpenEventHandle(0, exporter.sharing().ipcGetEventHandle(0, early));
    assertThat(importer.events().eventQuery(0, seen)).isFalse();
    go.countDown();
    importer.events().eventSynchronize(0, seen);
  }

  /** That others may wait for an event too changes nothing for who records it. */
  @Test
  void ownRecord_saysWhenTheWorkWasDone() {
    long bytes = 8 * MIB;
    long plain = exporter.memory().memAlloc(0, bytes);
    MemorySegment pinned = exporter.memory().memHostAlloc(0, bytes, 0);
    long idle = stream(exporter);
    long worked = exporter.events().eventCreate(0, 0);
    long later = exporter.events().eventCreate(0, 0);
    for (boolean asks : new boolean[] {true, false}) {
      exporter.transfers().memcpyHtoDAsync(0, plain, pinned, out);
      exporter.events().eventRecord(0, worked, out);
      exporter.events().eventRecord(0, event, out);
      if (asks) {
        awaitDone(exporter, event);
      } else {
        exporter.events().eventSynchronize(0, event);
      }
      exporter.events().eventRecord(0, later, idle);
      exporter.streams().streamSynchronize(0, idle);
      assertThat(exporter.events().eventElapsedTime(0, worked, later)).isNotNegative();
    }
  }

  /** The newest record counts, and no older one is waited for, not even one of this driver. */
  @Test
  void questionAboutTheRecordOfAnother_waitsForNoneOfItsOwn() {
    CountDownLatch go = new CountDownLatch(1);
    importer.streams().launchHostFunc(0, in, () -> Latches.await(go));
    importer.events().eventRecord(0, opened, in);
    assertThat(importer.events().eventQuery(0, opened)).isFalse();
    exporter.events().eventRecord(0, event, out);
    awaitDone(importer, opened);
    importer.events().eventSynchronize(0, opened);
    assertThat(importer.streams().streamQuery(0, in)).as("is held").isFalse();
    go.countDown();
    importer.streams().streamSynchronize(0, in);
  }

  private static Set<Thread> recorders() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals("cuvette-sim-shared-records"))
        .collect(Collectors.toSet());
  }

  /** Nobody ends the thread that sees to records after its driver, whatever is left to do. */
  @Test
  void closedDriver_leavesNoThreadForItsRecords() throws InterruptedException {
    Set<Thread> others = recorders();
    CountDownLatch go = new CountDownLatch(1);
    exporter.streams().launchHostFunc(0, out, () -> Latches.await(go));
    exporter.events().eventRecord(0, event, out);
    Set<Thread> own = recorders();
    own.removeAll(others);
    assertThat(own).isNotEmpty();
    exporter.close();
    go.countDown();
    for (Thread thread : own) {
      thread.join(30_000);
      assertThat(thread.isAlive()).isFalse();
    }
  }

  @Test
  void hostFunctionBehindAWait_comesByItself_andHoldsUpNoOther() throws InterruptedException {
    CountDownLatch go = new CountDownLatch(1);
    CountDownLatch behind = new CountDownLatch(1);
    CountDownLatch free = new CountDownLatch(1);
    exporter.streams().launchHostFunc(0, out, () -> Latches.await(go));
    exporter.events().eventRecord(0, event, out);
    importer.streams().streamWaitEvent(0, in, opened);
    importer.streams().launchHostFunc(0, in, behind::countDown);
    importer.streams().launchHostFunc(0, stream(importer), free::countDown);
    free.await();
    assertThat(behind.getCount()).isEqualTo(1);
    go.countDown();
    behind.await();
  }

  @Test
  void closedRecorder_isNotWaitedFor() {
    CountDownLatch go = new CountDownLatch(1);
    exporter.streams().launchHostFunc(0, out, () -> Latches.await(go));
    exporter.events().eventRecord(0, event, out);
    importer.streams().streamWaitEvent(0, in, opened);
    assertThat(importer.streams().streamQuery(0, in)).isFalse();
    exporter.close();
    importer.streams().streamSynchronize(0, in);
    importer.events().eventSynchronize(0, opened);
    go.countDown();
  }

  @Test
  void failedRecorder_isNotWaitedFor() {
    CountDownLatch recorded = new CountDownLatch(1); // nothing can be recorded after the failure
    long lost = exporter.memory().memAlloc(0, 4);
    exporter.transfers().memsetD8Async(0, lost, (byte) 1, 4, out);
    exporter
        .streams()
        .launchHostFunc(
            0,
            out,
            () -> {
              Latches.await(recorded);
              throw new IllegalStateException("the device fails");
            });
    exporter.events().eventRecord(0, event, out);
    recorded.countDown();
    importer.events().eventSynchronize(0, opened);
    org.assertj.core.api.Assertions.assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> exporter.streams().streamSynchronize(0, out));
  }

  @Test
  void destroyedEvent_hangsNobody_andIsNotOpenedAgain() {
    byte[] handle = exporter.sharing().ipcGetEventHandle(0, event);
    exporter.transfers().memsetD8Async(0, ours, (byte) 4, 4, out);
    exporter.events().eventRecord(0, event, out);
    exporter.events().eventDestroy(0, event);
    importer.streams().streamWaitEvent(0, in, opened);
    importer.events().eventDestroy(0, opened);
    importer.streams().streamSynchronize(0, in);
    assertThat(read(importer, theirs)).isEqualTo((byte) 4);
    CudaException refused =
        org.assertj.core.api.Assertions.catchThrowableOfType(
            CudaException.class, () -> importer.sharing().ipcOpenEventHandle(0, handle));
    assertThat(refused.status()).isEqualTo(CudaStatus.INVALID_VALUE);
    assertFails(
        CudaStatus.INVALID_HANDLE, "destroyed", () -> importer.events().eventQuery(0, opened));
    assertThat(importer.liveEvents()).isZero();
  }

  @Test
  void closeOfAWaitingDriver_endsTheWait() throws InterruptedException {
    CountDownLatch go = new CountDownLatch(1);
    exporter.streams().launchHostFunc(0, out, () -> Latches.await(go));
    exporter.events().eventRecord(0, event, out);
    AtomicReference<Throwable> ended = new AtomicReference<>();
    Thread waiting =
        Thread.ofPlatform()
            .uncaughtExceptionHandler((_, e) -> ended.set(e))
            .start(() -> importer.events().eventSynchronize(0, opened));
    while (waiting.getState() != Thread.State.TIMED_WAITING) {
      Thread.onSpinWait();
    }
    importer.close();
    waiting.join();
    go.countDown();
    assertFails(
        CudaStatus.DEINITIALIZED,
        "closed",
        () -> {
          throw ended.get();
        });
  }

  @Test
  void eventsThatCannotBeShared_areRefused() {
    long plain = exporter.events().eventCreate(0, 2);
    assertFails(
        CudaStatus.INVALID_VALUE,
        "expected: 4, interprocess, and 2",
        () -> exporter.sharing().ipcGetEventHandle(0, plain));
    byte[] handle = exporter.sharing().ipcGetEventHandle(0, event);
    assertThat(exporter.sharing().ipcGetEventHandle(0, event)).isEqualTo(handle);
    assertFails(
        CudaStatus.INVALID_CONTEXT,
        "made by this process",
        () -> exporter.sharing().ipcOpenEventHandle(0, handle));
    assertThatIllegalArgumentException()
        .isThrownBy(
            () -> importer.sharing().ipcOpenEventHandle(0, java.util.Arrays.copyOf(handle, 63)))
        .withMessageContaining("63 bytes");
    assertFails(
        CudaStatus.INVALID_VALUE,
        "handle: ",
        () -> importer.sharing().ipcOpenEventHandle(0, new byte[64]));
    assertFails(
        CudaStatus.INVALID_VALUE,
        "of kind 1 (expected: 3, EVENT)",
        () ->
            importer
                .sharing()
                .ipcOpenEventHandle(0, exporter.sharing().memPoolExportPointer(ours)));
    assertFails(
        CudaStatus.INVALID_HANDLE,
        "made without timing",
        () -> importer.events().eventElapsedTime(0, opened, opened));
  }

  @Test
  void closedDrivers_leaveNothing() {
    exporter.events().eventRecord(0, event, out);
    importer.streams().streamWaitEvent(0, in, opened);
    assertThat(importer.liveSharedFiles()).isEqualTo(2);
    assertThat(importer.report()).contains("event flags 6, device 0");
  }

  /** A record that is captured is none yet: other processes wait for what was recorded before. */
  @Test
  void capturedRecord_isNoneForOthers() {
    for (int i = 0; i < 3; i++) {
      exporter.captures().streamBeginCapture(0, out, 2);
      exporter.events().eventRecord(0, event, out);
      assertThat(importer.events().eventQuery(0, opened)).isTrue();
      importer.streams().streamWaitEvent(0, in, opened);
      importer.streams().streamSynchronize(0, in);
      exporter.graphs().graphDestroy(exporter.captures().streamEndCapture(0, out));
      assertThat(importer.events().eventQuery(0, opened)).isTrue();
      exporter.events().eventRecord(0, event, out);
      awaitDone(importer, opened);
    }
  }
}

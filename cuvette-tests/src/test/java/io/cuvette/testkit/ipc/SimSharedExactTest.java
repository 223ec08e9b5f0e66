package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.KernelFunction;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.sim.SimulatedKernels;
import io.cuvette.sim.SimulatedParameter;
import io.cuvette.testkit.support.Latches;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a driver does with shared events and memory that it used, freed or closed itself. */
@Timeout(60)
class SimSharedExactTest extends SimSharingBase {
  private static final int PENDING = 1024;
  private static final int LOOKS = 100;
  private static final byte UNTOUCHED = (byte) 0xA5;
  private static final LaunchShape ONE =
      new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);

  private final long event = exporter.events().eventCreate(0, INTERPROCESS);
  private final long opened =
      importer.sharing().ipcOpenEventHandle(0, exporter.sharing().ipcGetEventHandle(0, event));

  /** Stops a stream for a while. */
  private static CountDownLatch hold(SimulatedDriver driver, long stream) {
    CountDownLatch go = new CountDownLatch(1);
    driver.streams().launchHostFunc(0, stream, () -> Latches.await(go));
    return go;
  }

  @Test
  void ownRecordOfASharedEvent_isWaitedFor() {
    long behind = stream(exporter);
    CountDownLatch go = hold(exporter, out);
    exporter.events().eventRecord(0, event, out);
    exporter.streams().streamWaitEvent(0, behind, event);
    for (int i = 0; i < LOOKS; i++) {
      assertThat(exporter.streams().streamQuery(0, behind)).isFalse();
    }
    go.countDown();
    exporter.streams().streamSynchronize(0, behind);
    assertThat(exporter.streams().streamQuery(0, out)).isTrue();
  }

  @Test
  void recordOfAnotherProcess_isNotWaitedForInACapture() {
    exporter.events().eventRecord(0, event, out);
    importer.captures().streamBeginCapture(0, in, 2);
    assertFails(
        CudaStatus.STREAM_CAPTURE_ISOLATION,
        "outside of the capture",
        () -> importer.streams().streamWaitEvent(0, in, opened));
    assertFails(
        CudaStatus.STREAM_CAPTURE_INVALIDATED,
        "",
        () -> importer.captures().streamEndCapture(0, in));
  }

  @Test
  void recordThatIsRefused_keepsNoFile() {
    long elsewhere = exporter.streams().streamCreateWithPriority(1, 1, 0);
    for (int i = 0; i < 3; i++) {
      assertFails(
          CudaStatus.INVALID_HANDLE,
          "of device",
          () -> exporter.events().eventRecord(1, event, elsewhere));
    }
    exporter.events().eventDestroy(0, event);
    assertThat(exporter.liveSharedFiles()).isZero();
  }

  @Test
  void recordOfACapture_isNoneOfThoseThatArePending() {
    CountDownLatch go = hold(exporter, out);
    for (int i = 0; i < PENDING; i++) {
      exporter.events().eventRecord(0, event, out);
    }
    long captured = stream(exporter);
    exporter.captures().streamBeginCapture(0, captured, 2);
    exporter.events().eventRecord(0, event, captured);
    exporter.graphs().graphDestroy(exporter.captures().streamEndCapture(0, captured));
    go.countDown();
    exporter.streams().streamSynchronize(0, out);
  }

  @Test
  void recordOfAnImporter_isDoneOnceThatIsClosed() {
    CountDownLatch go = hold(importer, in);
    importer.events().eventRecord(0, opened, in);
    assertThat(exporter.events().eventQuery(0, event)).isFalse();
    importer.close();
    assertThat(exporter.events().eventQuery(0, event)).isTrue();
    go.countDown();
  }

  @Test
  void recordOfADestroyedEvent_isDoneOnceItsDriverIsClosed() {
    CountDownLatch go = hold(exporter, out);
    exporter.events().eventRecord(0, event, out);
    exporter.events().eventDestroy(0, event);
    assertThat(importer.events().eventQuery(0, opened)).isFalse();
    exporter.close();
    assertThat(importer.events().eventQuery(0, opened)).isTrue();
    go.countDown();
  }

  @Test
  void memoryThatIsBeingFreed_isNotExported() {
    long ours = allocate(pool(DEVICE), 64);
    CountDownLatch go = hold(exporter, out);
    exporter.ordered().memFreeAsync(0, ours, out);
    assertFails(CudaStatus.INVALID_VALUE, "", () -> exporter.sharing().memPoolExportPointer(ours));
    go.countDown();
    exporter.streams().streamSynchronize(0, out);
  }

  @Test
  void closeOfMemoryThatIsOpenStill_waitsForNothing_andTheLastOneCountsNothing() {
    long ours = exporter.memory().memAlloc(0, MIB);
    byte[] handle = exporter.sharing().ipcGetMemHandle(0, ours);
    MemoryInfo before = importer.devices().memGetInfo(0);
    long bytes = importer.liveBytes(0);
    long theirs = importer.sharing().ipcOpenMemHandle(0, handle);
    assertThat(importer.sharing().ipcOpenMemHandle(0, handle)).isEqualTo(theirs);
    CountDownLatch go = hold(importer, in);
    importer.sharing().ipcCloseMemHandle(0, theirs);
    assertThat(importer.streams().streamQuery(0, in)).isFalse();
    go.countDown();
    importer.sharing().ipcCloseMemHandle(0, theirs);
    assertThat(importer.devices().memGetInfo(0)).isEqualTo(before);
    assertThat(importer.liveBytes(0)).isEqualTo(bytes);
  }

  @Test
  void kernelOfAnImporter_neitherReadsNorWritesWhatWasFreed() {
    long pool = pool(DEVICE);
    long mapped = imported(pool);
    List<LongConsumer> frees =
        List.of(
            ours -> exporter.ordered().memFreeAsync(0, ours, out),
            ours -> exporter.memory().memFree(0, ours));
    for (LongConsumer free : frees) {
      long ours = allocate(pool, 64);
      long theirs =
          importer
              .sharing()
              .memPoolImportPointer(mapped, exporter.sharing().memPoolExportPointer(ours));
      fill(exporter, ours, 1, 64, out);
      AtomicInteger seen = new AtomicInteger();
      run(thread -> seen.set(thread.getByte(theirs)));
      assertThat(seen).hasValue(1);
      free.accept(ours);
      exporter.streams().streamSynchronize(0, out);
      long next = allocate(pool, 64);
      fill(exporter, next, 2, 64, out);
      run(thread -> {
        seen.set(thread.getByte(theirs));
        thread.setByte(theirs, (byte) 9);
      });
      assertThat(seen).hasValue(UNTOUCHED);
      assertThat(read(exporter, next)).isEqualTo((byte) 2);
    }
  }

  private void run(KernelFunction function) {
    SimulatedKernel kernel =
        SimulatedKernel.of("touchesShared", function, SimulatedParameter.POINTER);
    MemorySegment values = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG);
    LaunchParameters arguments = new LaunchParameters(values, List.of(new KernelParameter(0, 8)));
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(kernel)) {
      long library = importer.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(kernel)));
      long handle = importer.kernels().libraryGetKernel(library, kernel.name());
      importer.kernels().launchKernel(0, in, handle, ONE, arguments);
      importer.streams().streamSynchronize(0, in);
    }
  }

  /** What is queued has its file still. */
  @Test
  void eventThatWasDestroyed_isNotOpened_whileARecordOfItIsPending() {
    byte[] handle = exporter.sharing().ipcGetEventHandle(0, event);
    CountDownLatch go = hold(exporter, out);
    exporter.events().eventRecord(0, event, out);
    exporter.events().eventDestroy(0, event);
    assertThat(exporter.liveSharedFiles()).isEqualTo(1);
    assertFails(
        CudaStatus.INVALID_VALUE,
        "what it stood for was freed",
        () -> importer.sharing().ipcOpenEventHandle(0, handle));
    assertThat(importer.events().eventQuery(0, opened)).isFalse();
    go.countDown();
    importer.events().eventSynchronize(0, opened);
  }

  /** Its file is of sixteen times its size, and no longer. */
  @Test
  void roomOfASharedPool_isUsedAgain() {
    long pool = exporter.pools().memPoolCreate(new PoolProperties(1, 1, DEVICE, 0, 32 * MIB));
    for (int i = 0; i < 40; i++) {
      long address = exporter.ordered().memAllocFromPoolAsync(0, 32 * MIB, pool, out);
      exporter.ordered().memFreeAsync(0, address, out);
      exporter.streams().streamSynchronize(0, out);
    }
    exporter.pools().memPoolDestroy(pool);
    assertThat(exporter.liveSharedFiles()).as("but for the event").isEqualTo(1);
  }

  /** The second of two, too, behind the first that was given out again. */
  @Test
  void memoryOfASharedPool_thatIsGivenOutAgain_isAsUntouched() {
    long pool = pool(DEVICE);
    for (int round = 0; round < 3; round++) {
      long[] both = {allocate(pool, MIB), allocate(pool, MIB)};
      for (long each : both) {
        assertThat(read(exporter, each)).as("round %d", round).isEqualTo(UNTOUCHED);
        fill(exporter, each, 7, MIB, out);
      }
      for (long each : both) {
        exporter.ordered().memFreeAsync(0, each, out);
      }
      exporter.streams().streamSynchronize(0, out);
    }
  }

  /** There is one mapping of an allocation, and none while it is being taken away. */
  @Test
  void allocationThatIsImportedAgain_whileItsMappingIsBeingFreed_hasANewOne() {
    long pool = pool(DEVICE);
    byte[] pointer = exporter.sharing().memPoolExportPointer(allocate(pool, 64));
    long mapped = imported(pool);
    long first = importer.sharing().memPoolImportPointer(mapped, pointer);
    assertThat(importer.sharing().memPoolImportPointer(mapped, pointer)).isEqualTo(first);
    CountDownLatch go = hold(importer, in);
    importer.ordered().memFreeAsync(0, first, in);
    long second = importer.sharing().memPoolImportPointer(mapped, pointer);
    assertThat(second).isNotEqualTo(first);
    go.countDown();
    importer.streams().streamSynchronize(0, in);
    assertThat(importer.sharing().memPoolImportPointer(mapped, pointer)).isEqualTo(second);
    fill(importer, second, 4, 64, in);
  }

  @Test
  void recordThatWasDoneBeforeTheExport_isDoneForOthers() {
    long early = exporter.events().eventCreate(0, INTERPROCESS);
    exporter.events().eventRecord(0, early, out);
    exporter.streams().streamSynchronize(0, out);
    long seen =
        importer.sharing().ipcOpenEventHandle(0, exporter.sharing().ipcGetEventHandle(0, early));
    assertThat(importer.events().eventQuery(0, seen)).isTrue();
    exporter.events().eventDestroy(0, early);
    importer.events().eventDestroy(0, seen);
    assertThat(exporter.liveSharedFiles()).as("but for the other event").isEqualTo(1);
  }
}

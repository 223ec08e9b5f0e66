package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.testkit.support.Latches;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What is shared goes where its device is, and goes when the last has ended it. */
class SimSharedEndsTest extends SimSharingBase {
  /** Where the head of a shared file has it. */
  private static final long LOCATION_TYPE = 56;

  @Test
  void addressInsideAnAllocation_isExportedAsTheAllocation() {
    long pool = pool(DEVICE);
    long ours = allocate(pool, KIB);
    fill(exporter, ours, 7, KIB, out);
    byte[] handle = exporter.sharing().memPoolExportPointer(ours);
    assertThat(exporter.sharing().memPoolExportPointer(ours + 1)).isEqualTo(handle);
    assertThat(exporter.sharing().memPoolExportPointer(ours + KIB - 1)).isEqualTo(handle);
    long theirs = importer.sharing().memPoolImportPointer(imported(pool), handle);
    assertThat(read(importer, theirs + KIB - 1)).isEqualTo((byte) 7);
  }

  /** A free that waits ends what others could import, as one in stream order does. */
  @ParameterizedTest
  @ValueSource(ints = {DEVICE, HOST_NUMA})
  void plainFree_endsWhatOthersCouldImport(int location) {
    long pool = pool(location);
    long mapped = imported(pool);
    long ours = allocate(pool, KIB);
    byte[] handle = exporter.sharing().memPoolExportPointer(ours);
    long theirs = importer.sharing().memPoolImportPointer(mapped, handle);
    importer.memory().memFree(0, theirs);
    assertThat(importer.liveAllocations()).isZero();
    long again = importer.sharing().memPoolImportPointer(mapped, handle);
    fill(importer, again, 4, KIB, in);
    importer.memory().memFree(0, again);
    long kept = importer.sharing().memPoolImportPointer(mapped, handle);
    fill(importer, kept, 3, KIB, in);
    assertThat(read(importer, kept)).isEqualTo((byte) 3);
    exporter.memory().memFree(0, ours);
    assertThat(read(importer, kept)).as("it may be another's").isNotEqualTo((byte) 3);
    importer.memory().memFree(0, kept);
    assertFails(
        CudaStatus.INVALID_VALUE,
        "of an allocation that was freed",
        () -> importer.sharing().memPoolImportPointer(mapped, handle));
    long next = allocate(pool, KIB);
    assertFails(
        CudaStatus.INVALID_VALUE,
        "of an allocation that was freed",
        () -> importer.sharing().memPoolImportPointer(mapped, handle));
    assertThat(exporter.sharing().memPoolExportPointer(next)).isNotEqualTo(handle);
  }

  @Test
  void eventOfADeviceThatIsOutOfReach_isNotOpened_andNothingOfItStays() {
    long second = exporter.events().eventCreate(1, INTERPROCESS);
    byte[] handle = exporter.sharing().ipcGetEventHandle(1, second);
    try (SimulatedDriver single = open("devices=1");
        SimulatedDriver apart = open("devices=2,peers=none")) {
      assertFails(
          CudaStatus.INVALID_DEVICE,
          "device 1",
          () -> single.sharing().ipcOpenEventHandle(0, handle));
      assertFails(
          CudaStatus.PEER_ACCESS_UNSUPPORTED,
          "from device 0 to device 1",
          () -> apart.sharing().ipcOpenEventHandle(0, handle));
      assertThat(single.liveSharedFiles()).isZero();
      assertThat(apart.liveSharedFiles()).isZero();
      assertThat(apart.liveEvents()).isZero();
      apart.events().eventDestroy(1, apart.sharing().ipcOpenEventHandle(1, handle));
      assertThat(apart.liveSharedFiles()).isZero();
    }
  }

  @Test
  void eventThatWasWaitedFor_isGoneWithItsLastHandle() {
    long event = exporter.events().eventCreate(0, INTERPROCESS);
    long opened =
        importer.sharing().ipcOpenEventHandle(0, exporter.sharing().ipcGetEventHandle(0, event));
    CountDownLatch go = new CountDownLatch(1);
    exporter.streams().launchHostFunc(0, out, () -> Latches.await(go));
    exporter.events().eventRecord(0, event, out);
    importer.streams().streamWaitEvent(0, in, opened);
    importer.events().eventDestroy(0, opened);
    assertThat(importer.liveSharedFiles()).as("the wait needs it").isEqualTo(1);
    go.countDown();
    importer.streams().streamSynchronize(0, in);
    assertThat(importer.liveSharedFiles()).isZero();
  }

  @Test
  void eventOfADeviceThatFailed_isNotDone_whateverAnotherProcessRecords() {
    long event = exporter.events().eventCreate(0, INTERPROCESS);
    long opened =
        importer.sharing().ipcOpenEventHandle(0, exporter.sharing().ipcGetEventHandle(0, event));
    exporter.events().eventRecord(0, event, out);
    exporter.events().eventSynchronize(0, event);
    importer.events().eventSynchronize(0, opened);
    long gone = importer.ordered().memAllocAsync(0, KIB, in);
    importer
        .streams()
        .launchHostFunc(
            0,
            in,
            () -> {
              throw new IllegalStateException("the device fails");
            });
    assertFails(
        CudaStatus.LAUNCH_FAILED,
        "the device fails",
        () -> importer.streams().streamSynchronize(0, in));
    assertFails(CudaStatus.LAUNCH_FAILED, "", () -> importer.events().eventQuery(1, opened));
    assertThat(gone).isNotZero();
  }

  /** One file is one memory, on the device that it is of. */
  @Test
  void memoryOfTheSecondDevice_isImportedThere_andOnce() {
    AllocationProperties properties =
        AllocationProperties.ofDevice(1, MemHandleType.FILE_DESCRIPTOR);
    long made = exporter.virtual().memCreate(2 * MIB, properties);
    int descriptor = exporter.virtual().memExportToShareableHandle(made);
    long seen = importer.virtual().memImportFromShareableHandle(descriptor);
    DESCRIPTORS.close(descriptor);
    int again = exporter.virtual().memExportToShareableHandle(made);
    assertThat(importer.virtual().memImportFromShareableHandle(again)).isEqualTo(seen);
    DESCRIPTORS.close(again);
    assertThat(exporter.liveSharedFiles()).as("one file, each time").isEqualTo(1);
    assertThat(importer.virtual().memGetAllocationPropertiesFromHandle(seen)).isEqualTo(properties);
    long range = importer.virtual().memAddressReserve(2 * MIB, 0, 0);
    importer.virtual().memMap(range, 2 * MIB, 0, seen);
    importer.virtual().memSetAccess(range, 2 * MIB, DEVICE, new int[] {1}, 3);
    assertThat(importer.memory().pointerGetAttribute(1, 9, range)).isEqualTo(1);
    importer.virtual().memRelease(seen);
    assertThat(importer.virtual().memGetAllocationPropertiesFromHandle(seen))
        .as("imported twice, released once")
        .isEqualTo(properties);
    importer.virtual().memRelease(seen);
    assertFails(
        CudaStatus.INVALID_VALUE,
        "0x%x".formatted(seen),
        () -> importer.virtual().memRelease(seen));
    importer.virtual().memUnmap(range, 2 * MIB);
    assertThat(importer.liveSharedFiles()).isZero();
    importer.virtual().memAddressFree(range, 2 * MIB);
    exporter.virtual().memRelease(made);
  }

  @Test
  void poolOfTheSecondDevice_isImportedThere() {
    long pool = exporter.pools().memPoolCreate(new PoolProperties(1, 1, DEVICE, 1, 0));
    long stream = exporter.streams().streamCreateWithPriority(1, 1, 0);
    int descriptor = exporter.sharing().memPoolExportToShareableHandle(pool);
    long mapped = importer.sharing().memPoolImportFromShareableHandle(descriptor);
    DESCRIPTORS.close(descriptor);
    long ours = exporter.ordered().memAllocFromPoolAsync(1, KIB, pool, stream);
    exporter.transfers().memsetD8Async(1, ours, (byte) 6, KIB, stream);
    exporter.streams().streamSynchronize(1, stream);
    long theirs =
        importer
            .sharing()
            .memPoolImportPointer(mapped, exporter.sharing().memPoolExportPointer(ours));
    assertThat(importer.memory().pointerGetAttribute(1, 9, theirs)).isEqualTo(1);
    importer.transfers().memsetD8Async(1, theirs, (byte) 5, 1, 0);
    importer.streams().streamSynchronize(1, 0);
    assertFails(
        CudaStatus.INVALID_VALUE,
        "device 0 has access 0",
        () -> importer.transfers().memsetD8Async(0, theirs, (byte) 5, 1, in));
  }

  /** Whoever has the descriptor can write there. */
  @ParameterizedTest
  @ValueSource(ints = {DEVICE, HOST_NUMA})
  void poolOfAPlaceThatNoneIsOf_isRefused(int location) throws IOException {
    long pool = exporter.pools().memPoolCreate(new PoolProperties(1, 1, location, 0, 0));
    int descriptor = exporter.sharing().memPoolExportToShareableHandle(pool);
    try (FileChannel file =
        FileChannel.open(Path.of("/proc/self/fd/" + descriptor), StandardOpenOption.WRITE)) {
      for (int written : new int[] {0, 2, DEVICE + HOST_NUMA - location, 7, -1}) {
        ByteBuffer type = ByteBuffer.allocate(4).order(ByteOrder.nativeOrder());
        file.write(type.putInt(0, written), LOCATION_TYPE);
        assertFails(
            CudaStatus.INVALID_VALUE,
            "location type: %d of a shared pool (expected: %d)".formatted(written, location),
            () -> importer.sharing().memPoolImportFromShareableHandle(descriptor));
      }
      assertThat(importer.livePools()).isZero();
      assertThat(importer.liveSharedFiles()).isZero();
      ByteBuffer right = ByteBuffer.allocate(4).order(ByteOrder.nativeOrder());
      file.write(right.putInt(0, location), LOCATION_TYPE);
      long mapped = importer.sharing().memPoolImportFromShareableHandle(descriptor);
      importer.pools().memPoolDestroy(mapped);
      assertThat(importer.liveSharedFiles()).isZero();
    } finally {
      DESCRIPTORS.close(descriptor);
    }
  }

  @Test
  void pointer_isImportedIntoAnImportedPoolAlone() {
    byte[] handle = exporter.sharing().memPoolExportPointer(allocate(pool(DEVICE), KIB));
    for (int handleTypes : new int[] {0, 1}) {
      PoolProperties own = new PoolProperties(1, handleTypes, DEVICE, 0, 0);
      long pool = importer.pools().memPoolCreate(own);
      assertFails(
          CudaStatus.INVALID_VALUE,
          "pool: 0x%x (expected: one that was imported)".formatted(pool),
          () -> importer.sharing().memPoolImportPointer(pool, handle));
    }
  }

  @Test
  void importOfAPool_takesAsLongAsMakingOne() {
    int descriptor = exporter.sharing().memPoolExportToShareableHandle(pool(DEVICE));
    long start = importer.simulatedNanos(0);
    importer.pools().memPoolCreate(new PoolProperties(1, 0, DEVICE, 0, 0));
    long made = importer.simulatedNanos(0);
    importer.sharing().memPoolImportFromShareableHandle(descriptor);
    DESCRIPTORS.close(descriptor);
    assertThat(importer.simulatedNanos(0) - made).isEqualTo(made - start).isPositive();
  }

  /** Whoever has imported memory has its file until it is gone, and passes it on. */
  @Test
  void memoryThatWasImported_hasItsFile_andIsPassedOn() {
    AllocationProperties properties =
        AllocationProperties.ofDevice(0, MemHandleType.FILE_DESCRIPTOR);
    long made = exporter.virtual().memCreate(2 * MIB, properties);
    int descriptor = exporter.virtual().memExportToShareableHandle(made);
    long seen = importer.virtual().memImportFromShareableHandle(descriptor);
    DESCRIPTORS.close(descriptor);
    assertThat(importer.liveSharedFiles()).isEqualTo(1);
    int passed = importer.virtual().memExportToShareableHandle(seen);
    assertThat(exporter.virtual().memImportFromShareableHandle(passed)).isEqualTo(made);
    DESCRIPTORS.close(passed);
    importer.virtual().memRelease(seen);
    assertThat(importer.liveSharedFiles()).isZero();
    exporter.virtual().memRelease(made);
    exporter.virtual().memRelease(made);
  }

  /** Whoever has the descriptor can write there; which device it is the identity says. */
  @Test
  void memoryOfADevice_isOfThatOne_whateverNumberTheFileHas() throws IOException {
    AllocationProperties second = AllocationProperties.ofDevice(1, MemHandleType.FILE_DESCRIPTOR);
    long made = exporter.virtual().memCreate(2 * MIB, second);
    int descriptor = exporter.virtual().memExportToShareableHandle(made);
    exporter.virtual().memRelease(made);
    try (FileChannel file =
        FileChannel.open(Path.of("/proc/self/fd/" + descriptor), StandardOpenOption.WRITE)) {
      ByteBuffer number = ByteBuffer.allocate(4).order(ByteOrder.nativeOrder());
      file.write(number.putInt(0, 77), LOCATION_TYPE + 4);
      long seen = importer.virtual().memImportFromShareableHandle(descriptor);
      assertThat(importer.virtual().memGetAllocationPropertiesFromHandle(seen)).isEqualTo(second);
      importer.virtual().memRelease(seen);
    } finally {
      DESCRIPTORS.close(descriptor);
    }
  }
}

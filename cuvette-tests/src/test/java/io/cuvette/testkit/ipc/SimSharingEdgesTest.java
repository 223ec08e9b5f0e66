package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The ends of what can be shared: devices out of reach, pools of any size, and memory that is gone.
 */
class SimSharingEdgesTest extends SimSharingBase {

  @Test
  void plainMemoryThatIsOpen_isRefusedOnADeviceThatCannotReachIt() {
    long address = exporter.memory().memAlloc(1, 64);
    byte[] handle = exporter.sharing().ipcGetMemHandle(1, address);
    try (SimulatedDriver apart = open("devices=2,peers=none")) {
      for (int round = 0; round < 2; round++) {
        assertFails(
            CudaStatus.PEER_ACCESS_UNSUPPORTED,
            "from device 0 to device 1",
            () -> apart.sharing().ipcOpenMemHandle(0, handle));
        apart.sharing().ipcOpenMemHandle(1, handle); // from now on it is open
      }
    }
    exporter.memory().memFree(1, address);
  }

  @Test
  void sharedPool_mayHaveAnyMaximum() {
    for (int location : new int[] {DEVICE, HOST_NUMA}) {
      for (long most : new long[] {1, 64 * MIB, 1L << 50, Long.MAX_VALUE}) {
        long pool = exporter.pools().memPoolCreate(new PoolProperties(1, 1, location, 0, most));
        exporter.pools().memPoolSetAccess(pool, 1, new int[] {0}, 3);
        DESCRIPTORS.close(exporter.sharing().memPoolExportToShareableHandle(pool));
        long ours = allocate(pool, 4 * KIB);
        fill(exporter, ours, 7, 4 * KIB, out);
        long theirs =
            importer
                .sharing()
                .memPoolImportPointer(
                    imported(pool), exporter.sharing().memPoolExportPointer(ours));
        assertThat(read(importer, theirs + 4 * KIB - 1)).isEqualTo((byte) 7);
        exporter.ordered().memFreeAsync(0, ours, out);
        exporter.streams().streamSynchronize(0, out);
        exporter.pools().memPoolDestroy(pool);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {0, 24 * MIB})
  void sharedPool_lendsAllThatItMayHave(long most) {
    long pool = exporter.pools().memPoolCreate(new PoolProperties(1, 1, DEVICE, 0, most));
    long address = allocate(pool, 24 * MIB);
    exporter.ordered().memFreeAsync(0, address, out);
    exporter.streams().streamSynchronize(0, out);
    exporter.pools().memPoolDestroy(pool);
  }

  /** The limit of a pool counts as whole steps, which on a large device are of 32 MiB. */
  @Test
  void sharedPool_lendsWhatItsLimitCountsAs() {
    try (SimulatedDriver large = SimulatedDriver.open(SimulatedOptions.parse("memory=4GiB"))) {
      long stream = stream(large);
      for (int location : new int[] {DEVICE, HOST_NUMA}) {
        long pool = large.pools().memPoolCreate(new PoolProperties(1, 1, location, 0, 1));
        long address = large.ordered().memAllocFromPoolAsync(0, 32 * MIB, pool, stream);
        assertFails(
            CudaStatus.OUT_OF_MEMORY,
            "at most 33554432",
            () -> large.ordered().memAllocFromPoolAsync(0, 1, pool, stream));
        large.ordered().memFreeAsync(0, address, stream);
        large.streams().streamSynchronize(0, stream);
        large.pools().memPoolDestroy(pool);
      }
    }
  }

  /** Each has a page of the file. */
  @Test
  void sharedPool_lendsAllThatItMayHave_inTheSmallestPieces() throws IOException {
    long pool = exporter.pools().memPoolCreate(new PoolProperties(1, 1, DEVICE, 0, MIB));
    int descriptor = exporter.sharing().memPoolExportToShareableHandle(pool);
    assertThat(Files.size(Path.of("/proc/self/fd/" + descriptor))).isLessThan(1024 * MIB);
    DESCRIPTORS.close(descriptor);
    long[] all = new long[4096];
    for (int i = 0; i < all.length; i++) {
      all[i] = exporter.ordered().memAllocFromPoolAsync(0, 1, pool, out);
    }
    assertFails(
        CudaStatus.OUT_OF_MEMORY,
        "used=2097152 bytes in a pool of device 0, at most 2097152",
        () -> exporter.ordered().memAllocFromPoolAsync(0, 1, pool, out));
    for (long each : all) {
      exporter.ordered().memFreeAsync(0, each, out);
    }
    exporter.streams().streamSynchronize(0, out);
    exporter.pools().memPoolDestroy(pool);
    assertThat(exporter.liveSharedFiles()).isZero();
  }

  @Test
  void memoryWithoutAddress_isOfTheSameNodeOfTheHostThere() {
    AllocationProperties second =
        new AllocationProperties(MemHandleType.FILE_DESCRIPTOR, MemLocationType.HOST_NUMA, 1);
    try (SimulatedDriver from = open("numaNodes=2");
        SimulatedDriver to = open("numaNodes=2")) {
      long made = from.virtual().memCreate(2 * MIB, second);
      int descriptor = from.virtual().memExportToShareableHandle(made);
      long seen = to.virtual().memImportFromShareableHandle(descriptor);
      DESCRIPTORS.close(descriptor);
      assertThat(to.virtual().memGetAllocationPropertiesFromHandle(seen)).isEqualTo(second);
      to.virtual().memRelease(seen);
      from.virtual().memRelease(made);
    }
  }

  /** Whenever the free runs: at once, later, or when somebody waits. */
  @ParameterizedTest
  @ValueSource(strings = {"eager", "mixed", "lazy"})
  void memoryThatItsExporterFreed_readsAsWhatNobodyWrote(String pace) {
    try (SimulatedDriver first = open("devices=2,pace=" + pace)) {
      long pool = first.pools().memPoolCreate(new PoolProperties(1, 1, DEVICE, 0, 0));
      first.pools().memPoolSetAccess(pool, 1, new int[] {0}, 3);
      long stream = stream(first);
      int descriptor = first.sharing().memPoolExportToShareableHandle(pool);
      long mapped = importer.sharing().memPoolImportFromShareableHandle(descriptor);
      DESCRIPTORS.close(descriptor);
      importer.pools().memPoolSetAccess(mapped, 1, new int[] {0}, 3);
      long ours = first.ordered().memAllocFromPoolAsync(0, KIB, pool, stream);
      fill(first, ours, 8, KIB, stream);
      byte[] handle = first.sharing().memPoolExportPointer(ours);
      long theirs = importer.sharing().memPoolImportPointer(mapped, handle);
      assertThat(read(importer, theirs)).isEqualTo((byte) 8);
      first.ordered().memFreeAsync(0, ours, stream);
      first.streams().streamSynchronize(0, stream);
      assertThat(read(importer, theirs)).isEqualTo((byte) 0xA5);
      assertIsNotWritten(first, pool, stream, theirs);
    }
  }

  /** Whoever has the bytes by now keeps what it wrote. */
  private void assertIsNotWritten(SimulatedDriver first, long pool, long stream, long freed) {
    long next = first.ordered().memAllocFromPoolAsync(0, KIB, pool, stream);
    fill(first, next, 9, KIB, stream);
    long plain = importer.memory().memAlloc(0, KIB);
    MemorySegment pinned = importer.memory().memHostAlloc(0, KIB, 0);
    importer.transfers().memcpyAsync(0, freed, plain, KIB, in);
    importer.transfers().memcpyAsync(0, freed, pinned.address(), KIB, in);
    fill(importer, freed, 7, KIB, in);
    assertThat(read(first, next)).isEqualTo((byte) 9);
    assertThat(read(importer, freed)).isEqualTo((byte) 0xA5);
    importer.memory().memFree(0, plain);
    importer.memory().memFreeHost(0, pinned.address());
  }

  @Test
  void severalAllocations_areImportedApart() {
    long pool = pool(DEVICE);
    List<byte[]> handles = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      long ours = allocate(pool, KIB);
      fill(exporter, ours, i, KIB, out);
      handles.add(exporter.sharing().memPoolExportPointer(ours));
    }
    long mapped = imported(pool);
    for (int i = 0; i < 3; i++) {
      long theirs = importer.sharing().memPoolImportPointer(mapped, handles.get(i));
      assertThat(read(importer, theirs)).isEqualTo((byte) i);
    }
    assertThat(importer.liveAllocations()).isEqualTo(3);
  }

  /** Nothing has a beginning too, and no end besides. */
  @ParameterizedTest
  @ValueSource(ints = {DEVICE, HOST_NUMA})
  void addresses_areExportedFromTheFirstToTheLast_alsoThoseOfNothing(int location) {
    long pool = pool(location);
    long some = allocate(pool, 600);
    byte[] handle = exporter.sharing().memPoolExportPointer(some);
    for (long inside : new long[] {1, 300, 599}) {
      assertThat(exporter.sharing().memPoolExportPointer(some + inside)).hasSameSizeAs(handle);
    }
    for (long outside : new long[] {-1, 600, 601}) {
      assertFails(
          CudaStatus.INVALID_VALUE,
          "address",
          () -> exporter.sharing().memPoolExportPointer(some + outside));
    }
    long none = allocate(pool, 0);
    assertThat(exporter.sharing().memPoolExportPointer(none)).hasSameSizeAs(handle);
  }

  /** Whoever passes its handle on: it is one allocation, and its end counts for all. */
  @Test
  void allocationThatAnImporterPassesOn_isTheSame_andGoneOnceItIsFreed() {
    long pool = pool(DEVICE);
    long second = imported(pool);
    long[] ours = {allocate(pool, KIB), allocate(pool, KIB)};
    byte[][] handles = new byte[2][];
    byte[][] passedOn = new byte[2][];
    for (int i = 0; i < 2; i++) {
      fill(exporter, ours[i], 5 + i, KIB, out);
      handles[i] = exporter.sharing().memPoolExportPointer(ours[i]);
    }
    for (int i = 1; i >= 0; i--) {
      long theirs = importer.sharing().memPoolImportPointer(second, handles[i]);
      passedOn[i] = importer.sharing().memPoolExportPointer(theirs);
    }
    try (SimulatedDriver third = open("devices=1")) {
      int descriptor = importer.sharing().memPoolExportToShareableHandle(second);
      long last = third.sharing().memPoolImportFromShareableHandle(descriptor);
      DESCRIPTORS.close(descriptor);
      for (int i = 0; i < 2; i++) {
        for (byte[] handle : List.of(handles[i], passedOn[i])) {
          long found = third.sharing().memPoolImportPointer(last, handle);
          assertThat(read(third, found)).isEqualTo((byte) (5 + i));
        }
        exporter.memory().memFree(0, ours[i]);
        for (byte[] handle : List.of(handles[i], passedOn[i])) {
          assertFails(
              CudaStatus.INVALID_VALUE,
              "of an allocation that was freed",
              () -> third.sharing().memPoolImportPointer(last, handle));
        }
      }
    }
  }
}

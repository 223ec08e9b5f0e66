package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.SimulatedDriver;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Arrays;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Pools and their allocations, shared with another simulated driver. */
class SimPoolSharingTest extends SimSharingBase {

  /** What the importer gets of memory of the exporter. */
  private long mapOf(long pool, long ours) {
    return importer
        .sharing()
        .memPoolImportPointer(pool, exporter.sharing().memPoolExportPointer(ours));
  }

  @ParameterizedTest
  @ValueSource(ints = {DEVICE, HOST_NUMA})
  void writes_areSeenBothWays(int location) {
    long pool = pool(location);
    long ours = allocate(pool, 100 * KIB);
    fill(exporter, ours, 7, 100 * KIB, out);
    long mapped = imported(pool);
    long theirs = mapOf(mapped, ours);
    assertThat(read(importer, theirs + 100 * KIB - 1)).isEqualTo((byte) 7);
    fill(importer, theirs + 5, 9, KIB, in);
    assertThat(read(exporter, ours, 7)).containsExactly(7, 7, 7, 7, 7, 9, 9);
    assertThat(importer.memory().pointerGetAttribute(0, 11, theirs + 5)).isEqualTo(theirs);
    assertThat(importer.memory().pointerGetAttribute(0, 12, theirs)).isEqualTo(100 * KIB);
    assertThat(importer.memory().pointerGetAttribute(0, 17, theirs)).isEqualTo(mapped);
    assertThat(importer.memory().pointerGetAttribute(0, 2, theirs))
        .isEqualTo(location == DEVICE ? 2 : 1);
    assertThat(importer.memory().pointerGetAttribute(0, 9, theirs)).isZero();
  }

  @Test
  void memoryNobodyWrote_readsAsThatOfADevice_inBoth() {
    long pool = pool(DEVICE);
    long ours = allocate(pool, MIB);
    long theirs = mapOf(imported(pool), ours);
    assertThat(read(exporter, ours)).isEqualTo((byte) 0xA5);
    assertThat(read(importer, theirs + MIB - 1)).isEqualTo((byte) 0xA5);
  }

  @Test
  void usedAgainMemory_isForgotten_beforeItIsExported() {
    long pool = pool(DEVICE);
    long first = allocate(pool, MIB);
    fill(exporter, first, 1, MIB, out);
    exporter.ordered().memFreeAsync(0, first, out);
    exporter.streams().streamSynchronize(0, out);
    long second = allocate(pool, MIB);
    long theirs = mapOf(imported(pool), second);
    fill(importer, theirs, 3, KIB, in);
    assertThat(read(exporter, second, 2)).containsExactly(3, 3);
    assertThat(read(exporter, second + KIB)).isEqualTo((byte) 0xA5);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3, 8, 4095, 65_537, 200_000})
  void copiesOfAnySize_areExact_betweenSharedAndOtherMemory(int bytes) {
    long seed = Long.getLong("cuvette.seed", bytes);
    byte[] content = new byte[bytes];
    new SplittableRandom(seed).nextBytes(content);
    long shared = allocate(pool(DEVICE), bytes + 3L) + 3;
    long plain = exporter.memory().memAlloc(0, bytes + 1L) + 1;
    MemorySegment host = exporter.memory().memHostAlloc(0, bytes, 0);
    host.copyFrom(MemorySegment.ofArray(content));
    exporter.transfers().memcpyAsync(0, plain, host.address(), bytes, out);
    exporter.transfers().memcpyAsync(0, shared, plain, bytes, out);
    exporter.transfers().memsetD8Async(0, plain, (byte) 0, bytes, out);
    exporter.transfers().memcpyAsync(0, plain, shared, bytes, out);
    exporter.streams().streamSynchronize(0, out);
    assertThat(read(exporter, shared, bytes)).as("seed=%d", seed).isEqualTo(content);
    assertThat(read(exporter, plain, bytes)).as("seed=%d", seed).isEqualTo(content);
  }

  @Test
  void pattern_keepsItsPhase() {
    long ours = allocate(pool(DEVICE), KIB);
    exporter.transfers().memsetD32Async(0, ours + 4, 0x04030201, 2, out);
    exporter.streams().streamSynchronize(0, out);
    assertThat(read(exporter, ours + 4, 8)).containsExactly(1, 2, 3, 4, 1, 2, 3, 4);
  }

  @Test
  void devicePool_importsAnAllocationOnce_andTheFirstFreeEndsIt() {
    long pool = pool(DEVICE);
    byte[] handle = exporter.sharing().memPoolExportPointer(allocate(pool, KIB));
    long mapped = imported(pool);
    long first = importer.sharing().memPoolImportPointer(mapped, handle);
    assertThat(importer.sharing().memPoolImportPointer(mapped, handle)).isEqualTo(first);
    assertThat(importer.liveAllocations()).isEqualTo(1);
    importer.ordered().memFreeAsync(0, first, in);
    importer.streams().streamSynchronize(0, in);
    assertThat(importer.liveAllocations()).isZero();
    assertFails(
        CudaStatus.INVALID_VALUE,
        "this was freed",
        () -> importer.ordered().memFreeAsync(0, first, in));
    long again = importer.sharing().memPoolImportPointer(mapped, handle);
    assertThat(read(importer, again)).isEqualTo((byte) 0xA5);
  }

  @Test
  void hostPool_refusesASecondImport_whileTheFirstIsMapped() {
    long pool = pool(HOST_NUMA);
    byte[] handle = exporter.sharing().memPoolExportPointer(allocate(pool, KIB));
    long mapped = imported(pool);
    long first = importer.sharing().memPoolImportPointer(mapped, handle);
    assertFails(
        CudaStatus.ALREADY_MAPPED,
        "is this allocation already",
        () -> importer.sharing().memPoolImportPointer(mapped, handle));
    importer.memory().memFree(0, first);
    importer.memory().memFree(0, importer.sharing().memPoolImportPointer(mapped, handle));
    assertThat(importer.liveAllocations()).isZero();
  }

  @Test
  void device_saysWhichHandlesItsPoolsHave() {
    assertThat(exporter.devices().deviceGetAttribute(119, 0)).as("a file descriptor").isEqualTo(1);
  }

  @Test
  void importedPool_allocatesNothing_andIsNobodysCurrentPool() {
    long mapped = imported(pool(DEVICE));
    String rule =
        "pool: 0x%x was imported (expected: one that this process can allocate from)"
            .formatted(mapped);
    CudaStatus status = CudaStatus.INVALID_VALUE;
    assertFails(status, rule, () -> importer.ordered().memAllocFromPoolAsync(0, KIB, mapped, in));
    assertFails(status, rule, () -> importer.pools().deviceSetMemPool(0, mapped));
    assertFails(status, rule, () -> importer.pools().memSetMemPool(1, 0, 1, mapped));
    assertFails(
        status, "of another process", () -> importer.pools().memPoolGetAttribute(mapped, 5));
    assertFails(
        status, "of another process", () -> importer.pools().memPoolSetAttribute(mapped, 4, 1));
    assertFails(status, "of another process", () -> importer.pools().memPoolTrimTo(mapped, 0));
    assertThat(importer.report()).isEqualTo(reportOfPool(importer, mapped));
  }

  private String reportOfPool(SimulatedDriver driver, long pool) {
    String streams = "stream id %d, device 0\n".formatted(driver.streams().streamGetId(0, in));
    return streams + "imported pool 0x%x of device 0\n".formatted(pool);
  }

  @Test
  void access_isTheImportersOwn() {
    long pool = pool(DEVICE);
    exporter.pools().memPoolSetAccess(pool, 1, new int[] {1}, 3);
    long mapped = imported(pool);
    assertThat(importer.pools().memPoolGetAccess(mapped, 1, 0)).isEqualTo(3);
    assertThat(importer.pools().memPoolGetAccess(mapped, 1, 1)).isZero();
    importer.pools().memPoolSetAccess(mapped, 1, new int[] {1}, 1);
    assertThat(exporter.pools().memPoolGetAccess(pool, 1, 1)).isEqualTo(3);
  }

  @Test
  void poolOfADeviceThatIsNotHere_isRefused() {
    long pool = exporter.pools().memPoolCreate(new PoolProperties(1, 1, DEVICE, 1, 0));
    int descriptor = exporter.sharing().memPoolExportToShareableHandle(pool);
    try (SimulatedDriver single = open("devices=1")) {
      assertFails(
          CudaStatus.INVALID_DEVICE,
          "shared by device 1",
          () -> single.sharing().memPoolImportFromShareableHandle(descriptor));
      assertThat(single.livePools()).isZero();
      assertThat(single.liveSharedFiles()).isZero();
    } finally {
      DESCRIPTORS.close(descriptor);
    }
  }

  /** Else the next access of the exporter, or of any importer, would fail inside the JVM. */
  @Test
  void whoHasTheDescriptor_cannotTakeTheMemoryFromUnderOthers() throws IOException {
    long pool = pool(DEVICE);
    long ours = allocate(pool, MIB);
    fill(exporter, ours, 7, MIB, out);
    int descriptor = exporter.sharing().memPoolExportToShareableHandle(pool);
    long mapped = importer.sharing().memPoolImportFromShareableHandle(descriptor);
    long theirs = mapOf(mapped, ours);
    Path file = Path.of("/proc/self/fd/" + descriptor);
    for (long bytes : new long[] {0, 4096, Files.size(file) - 1}) {
      try (FileChannel holder = FileChannel.open(file, StandardOpenOption.WRITE)) {
        assertThatThrownBy(() -> holder.truncate(bytes)).isInstanceOf(IOException.class);
      }
    }
    assertThatThrownBy(() -> Files.newOutputStream(file).close()).isInstanceOf(IOException.class);
    DESCRIPTORS.close(descriptor);
    assertThat(read(exporter, ours + MIB - 1)).isEqualTo((byte) 7);
    assertThat(read(importer, theirs + MIB - 1)).isEqualTo((byte) 7);
    long more = allocate(pool, 4 * MIB);
    fill(exporter, more, 8, 4 * MIB, out);
    assertThat(read(exporter, more + 4 * MIB - 1)).as("it still grows").isEqualTo((byte) 8);
    importer.ordered().memFreeAsync(0, theirs, in);
    importer.pools().memPoolDestroy(mapped);
  }

  @Test
  void fileThatSomebodyCanShorten_isNoPool(@TempDir Path folder) throws IOException {
    int descriptor = exporter.sharing().memPoolExportToShareableHandle(pool(DEVICE));
    Path copy = folder.resolve("copy");
    int same = DESCRIPTORS.lock(copy.toString(), Duration.ZERO);
    try {
      copyOfThePool(descriptor, copy);
      assertFails(
          CudaStatus.INVALID_VALUE,
          "a file that can get shorter",
          () -> importer.sharing().memPoolImportFromShareableHandle(same));
      assertThat(importer.liveSharedFiles()).isZero();
    } finally {
      DESCRIPTORS.close(same);
      DESCRIPTORS.close(descriptor);
    }
  }

  /** As long as the pool's file, with the pages that describe it. */
  private static void copyOfThePool(int descriptor, Path copy) throws IOException {
    Path file = Path.of("/proc/self/fd/" + descriptor);
    try (FileChannel from = FileChannel.open(file, StandardOpenOption.READ);
        FileChannel to = FileChannel.open(copy, StandardOpenOption.WRITE)) {
      to.write(ByteBuffer.allocate(1), from.size() - 1);
      assertThat(from.transferTo(0, MIB, to)).isEqualTo(MIB);
    }
  }

  @Test
  void exporterItself_getsTheSameBytesAtAnotherAddress() {
    long pool = pool(DEVICE);
    long ours = allocate(pool, KIB);
    int descriptor = exporter.sharing().memPoolExportToShareableHandle(pool);
    long mapped = exporter.sharing().memPoolImportFromShareableHandle(descriptor);
    DESCRIPTORS.close(descriptor);
    long other =
        exporter
            .sharing()
            .memPoolImportPointer(mapped, exporter.sharing().memPoolExportPointer(ours));
    assertThat(other).isNotEqualTo(ours);
    fill(exporter, other, 4, KIB, out);
    assertThat(read(exporter, ours)).isEqualTo((byte) 4);
    exporter.ordered().memFreeAsync(0, other, out);
    exporter.pools().memPoolDestroy(mapped);
    assertThat(read(exporter, ours)).isEqualTo((byte) 4);
  }

  @Test
  void importOfAnImport_isTheSameMemory() {
    long pool = pool(DEVICE);
    long ours = allocate(pool, KIB);
    long second = imported(pool);
    long theirs = mapOf(second, ours);
    try (SimulatedDriver third = open("devices=1")) {
      int descriptor = importer.sharing().memPoolExportToShareableHandle(second);
      long pool3 = third.sharing().memPoolImportFromShareableHandle(descriptor);
      DESCRIPTORS.close(descriptor);
      long last =
          third
              .sharing()
              .memPoolImportPointer(pool3, importer.sharing().memPoolExportPointer(theirs));
      fill(third, last, 6, KIB, 0);
      assertThat(read(exporter, ours)).isEqualTo((byte) 6);
    }
  }

  /** The free counts when the stream gets there, not when it is queued. */
  @Test
  void freedAllocation_isTheImporters_untilTheFreeIsDone() {
    long pool = pool(DEVICE);
    long ours = allocate(pool, KIB);
    long theirs = mapOf(imported(pool), ours);
    MemorySegment flag = exporter.memory().memHostAlloc(0, 4, 0);
    flag.set(ValueLayout.JAVA_INT, 0, 0);
    exporter.streams().streamWaitValue32(0, out, flag.address(), 1, 0);
    exporter.ordered().memFreeAsync(0, ours, out);
    fill(importer, theirs, 3, KIB, in);
    assertThat(read(importer, theirs)).isEqualTo((byte) 3);
    flag.set(ValueLayout.JAVA_INT, 0, 1);
    exporter.streams().streamSynchronize(0, out);
    assertThat(read(importer, theirs)).isEqualTo((byte) 0xA5);
  }

  @Test
  void freedAllocation_isNotImported_alsoWhenItsPlaceIsUsedAgain() {
    long pool = pool(DEVICE);
    long mapped = imported(pool);
    long first = allocate(pool, KIB);
    byte[] handle = exporter.sharing().memPoolExportPointer(first);
    assertThat(exporter.sharing().memPoolExportPointer(first)).isEqualTo(handle);
    exporter.ordered().memFreeAsync(0, first, out);
    String rule = "of an allocation that was freed";
    CudaStatus status = CudaStatus.INVALID_VALUE;
    assertFails(status, rule, () -> importer.sharing().memPoolImportPointer(mapped, handle));
    exporter.sharing().memPoolExportPointer(allocate(pool, KIB));
    assertFails(status, rule, () -> importer.sharing().memPoolImportPointer(mapped, handle));
    assertFails(status, "was freed", () -> exporter.sharing().memPoolExportPointer(first));
  }

  @Test
  void whatCannotBeExported_isRefused() {
    long plain = exporter.memory().memAlloc(0, KIB);
    long unshared = exporter.ordered().memAllocAsync(0, KIB, out);
    long other = exporter.pools().memPoolCreate(new PoolProperties(1, 0, DEVICE, 0, 0));
    CudaStatus status = CudaStatus.INVALID_VALUE;
    String rule = "made with handle type 1";
    assertFails(status, rule, () -> exporter.sharing().memPoolExportPointer(plain));
    assertFails(status, rule, () -> exporter.sharing().memPoolExportPointer(unshared));
    assertFails(status, rule, () -> exporter.sharing().memPoolExportToShareableHandle(other));
    assertFails(status, "live memory", () -> exporter.sharing().memPoolExportPointer(12_345));
    long shared = allocate(pool(DEVICE), KIB);
    assertFails(status, "inside", () -> exporter.sharing().memPoolExportPointer(shared + KIB));
  }

  @Test
  void wrongHandles_areRefused() {
    long pool = pool(DEVICE);
    long other = pool(DEVICE);
    long mapped = imported(pool);
    byte[] handle = exporter.sharing().memPoolExportPointer(allocate(pool, KIB));
    byte[] foreign = exporter.sharing().memPoolExportPointer(allocate(other, KIB));
    CudaStatus status = CudaStatus.INVALID_VALUE;
    assertFails(
        status, "another pool", () -> importer.sharing().memPoolImportPointer(mapped, foreign));
    for (int length : new int[] {0, 63, 65}) {
      byte[] wrong = Arrays.copyOf(handle, length);
      assertThatIllegalArgumentException()
          .isThrownBy(() -> importer.sharing().memPoolImportPointer(mapped, wrong))
          .withMessageContaining("%d bytes", length);
    }
    for (int i = 0; i < handle.length; i++) {
      byte[] wrong = handle.clone();
      wrong[i] ^= 1;
      assertFails(status, "handle: ", () -> importer.sharing().memPoolImportPointer(mapped, wrong));
    }
    assertFails(
        status,
        "one that was imported",
        () -> exporter.sharing().memPoolImportPointer(pool, handle));
    assertThat(importer.liveAllocations()).isZero();
  }

  @Test
  void descriptorsOfSomethingElse_areRefused(@TempDir Path directory) throws IOException {
    CudaStatus status = CudaStatus.INVALID_VALUE;
    assertFails(
        status, "an open one", () -> importer.sharing().memPoolImportFromShareableHandle(-1));
    assertFails(
        status, "an open one", () -> importer.sharing().memPoolImportFromShareableHandle(987_654));
    int empty = DESCRIPTORS.memoryFile("empty", 0);
    int zeros = DESCRIPTORS.memoryFile("zeros", 16 * MIB);
    int socket = DESCRIPTORS.listen(directory.resolve("socket").toString());
    for (int descriptor : new int[] {empty, zeros, socket}) {
      assertFails(
          status,
          "(expected: a POOL",
          () -> importer.sharing().memPoolImportFromShareableHandle(descriptor));
      assertThat(DESCRIPTORS.isOpen(descriptor)).isTrue();
      DESCRIPTORS.close(descriptor);
    }
    // Truncated, with a head that is right.
    int whole = exporter.sharing().memPoolExportToShareableHandle(pool(DEVICE));
    byte[] head = new byte[4096];
    try (var in = Files.newInputStream(Path.of("/proc/self/fd/" + whole))) {
      in.readNBytes(head, 0, head.length);
    }
    int part = DESCRIPTORS.memoryFile("part", 8 * MIB);
    Files.write(Path.of("/proc/self/fd/" + part), head, java.nio.file.StandardOpenOption.WRITE);
    assertFails(
        status,
        "that claims 1073741824 of data",
        () -> importer.sharing().memPoolImportFromShareableHandle(part));
    DESCRIPTORS.close(part);
    DESCRIPTORS.close(whole);
    assertThat(importer.livePools()).isZero();
    assertThat(importer.liveSharedFiles()).isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {DEVICE, HOST_NUMA})
  void importedMemory_outlivesThePoolItsExporterAndItsImport(int location) {
    long pool = pool(location);
    long ours = allocate(pool, KIB);
    fill(exporter, ours, 8, KIB, out);
    exporter.streams().streamSynchronize(0, out);
    long mapped = imported(pool);
    long theirs = mapOf(mapped, ours);
    importer.pools().memPoolDestroy(mapped);
    exporter.pools().memPoolDestroy(pool);
    exporter.close();
    assertThat(read(importer, theirs)).isEqualTo((byte) 8);
    importer.ordered().memFreeAsync(0, theirs, in);
    importer.streams().streamSynchronize(0, in);
    assertThat(importer.liveAllocations()).isZero();
    assertThat(importer.liveSharedFiles()).isZero();
  }

  @Test
  void useAfterTheFree_isFoundAsAlways() {
    long pool = pool(DEVICE);
    long theirs =
        importer
            .sharing()
            .memPoolImportPointer(
                imported(pool), exporter.sharing().memPoolExportPointer(allocate(pool, KIB)));
    importer.ordered().memFreeAsync(0, theirs, in);
    // By the call itself, if the memory is gone already, or by the device.
    assertThatThrownBy(
            () -> {
              importer.transfers().memsetD8Async(0, theirs, (byte) 1, 1, in);
              importer.streams().streamSynchronize(0, in);
            })
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("freed");
  }

  @Test
  void viewsOfHostMemory_areTheSameBytesInBoth() {
    long pool = pool(HOST_NUMA);
    long ours = allocate(pool, KIB);
    long theirs = mapOf(imported(pool), ours);
    try (Arena arena = Arena.ofShared()) {
      MemorySegment one = exporter.memory().hostView(0, ours, KIB, arena);
      MemorySegment other = importer.memory().hostView(0, theirs + 8, KIB - 8, arena);
      one.set(ValueLayout.JAVA_LONG, 8, 0x0123_4567_89AB_CDEFL);
      assertThat(other.get(ValueLayout.JAVA_LONG, 0)).isEqualTo(0x0123_4567_89AB_CDEFL);
      other.set(ValueLayout.JAVA_BYTE, KIB - 9, (byte) 5);
      assertThat(one.get(ValueLayout.JAVA_BYTE, KIB - 1)).isEqualTo((byte) 5);
      assertThat(one.get(ValueLayout.JAVA_BYTE, 0)).as("never written").isEqualTo((byte) 0xA5);
    }
  }

  @Test
  void interruptedThread_sharesAllTheSame() {
    long pool = pool(DEVICE);
    Thread.currentThread().interrupt();
    try {
      long ours = allocate(pool, KIB);
      byte[] handle = exporter.sharing().memPoolExportPointer(ours);
      importer.sharing().memPoolImportPointer(imported(pool), handle);
    } finally {
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  @Test
  void smallAllocations_fitAPoolOfALimit_thoughEachTakesAPageOfTheFile() {
    long pool = exporter.pools().memPoolCreate(new PoolProperties(1, 1, DEVICE, 0, 2 * MIB));
    long last = 0;
    for (int i = 0; i < 4096; i++) {
      last = exporter.ordered().memAllocFromPoolAsync(0, 512, pool, out);
    }
    assertFails(
        CudaStatus.OUT_OF_MEMORY,
        "at most 2097152",
        () -> exporter.ordered().memAllocFromPoolAsync(0, 512, pool, out));
    exporter.streams().streamSynchronize(0, out);
    long theirs = mapOf(imported(pool), last);
    fill(importer, theirs, 3, 512, in);
    assertThat(read(exporter, last + 511)).isEqualTo((byte) 3);
  }

  @Test
  void importedMemory_takesNoMemoryOfTheDevice() {
    long pool = pool(DEVICE);
    long ours = allocate(pool, 32 * MIB);
    long free = importer.devices().memGetInfo(0).freeBytes();
    long theirs = mapOf(imported(pool), ours);
    assertThat(importer.devices().memGetInfo(0).freeBytes()).isEqualTo(free);
    assertThat(importer.liveBytes(0)).isZero();
    assertThat(importer.report()).contains("imported DEVICE memory 0x%x".formatted(theirs));
    importer.memory().memFree(0, theirs);
    assertThat(importer.devices().memGetInfo(0).freeBytes()).isEqualTo(free);
  }
}

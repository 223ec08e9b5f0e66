package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.PoolProperties;
import io.cuvette.driver.VirtualCalls;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.support.Latches;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Files that simulated drivers share: what is open of them and mapped, and for how long. */
@Timeout(120)
class SimSharedFilesTest extends SimSharingBase {
  private static final int ENTRIES = 1024;

  private static final SimulatedOptions HUGE = SimulatedOptions.parse("memory=8TiB,context=0");
  private static final long HUGE_BYTES = 8L << 40;

  /** Of so many: more than the 2^47 bytes that a program gets addresses for. */
  private static final int MOST_MAPPED = 100;

  @Test
  void openedPlainMemory_keepsNoDescriptor() throws IOException {
    long ours = exporter.memory().memAlloc(0, MIB);
    byte[] handle = exporter.sharing().ipcGetMemHandle(0, ours);
    long before = OpenFiles.count();
    long theirs = importer.sharing().ipcOpenMemHandle(0, handle);
    assertThat(OpenFiles.count()).isLessThanOrEqualTo(before);
    fill(importer, theirs, 3, KIB, in);
    assertThat(read(exporter, ours)).isEqualTo((byte) 3);
    importer.sharing().ipcCloseMemHandle(0, theirs);
  }

  @Test
  void fileThatIsNoPool_isNotLeftMapped() throws IOException {
    int wrong = DESCRIPTORS.memoryFile("cuvette-no-pool", 16 * MIB);
    try {
      assertFails(
          CudaStatus.INVALID_VALUE,
          "a simulated driver shares",
          () -> importer.sharing().memPoolImportFromShareableHandle(wrong));
    } finally {
      DESCRIPTORS.close(wrong);
    }
    try (Stream<String> mappings = Files.lines(Path.of("/proc/self/maps"))) {
      assertThat(mappings).noneMatch(line -> line.contains("cuvette-no-pool"));
    }
  }

  /** Each pending record has an entry of its own: one more than there are is refused. */
  @Test
  void recordsBeyondTheEntries_areRefusedWhileNoneIsDone() {
    long event = exporter.events().eventCreate(0, INTERPROCESS);
    long opened =
        importer.sharing().ipcOpenEventHandle(0, exporter.sharing().ipcGetEventHandle(0, event));
    CountDownLatch go = new CountDownLatch(1);
    exporter.streams().launchHostFunc(0, out, () -> Latches.await(go));
    for (int i = 0; i < ENTRIES; i++) {
      exporter.events().eventRecord(0, event, out);
    }
    assertFails(
        CudaStatus.NOT_READY,
        "1024 records of all processes",
        () -> exporter.events().eventRecord(0, event, out));
    assertThat(importer.events().eventQuery(0, opened)).isFalse();
    go.countDown();
    importer.events().eventSynchronize(0, opened);
    exporter.events().eventRecord(0, event, out);
    importer.events().eventSynchronize(0, opened);
    importer.events().eventDestroy(0, opened);
    exporter.events().eventDestroy(0, event);
    exporter.streams().streamSynchronize(0, out);
    assertThat(exporter.liveSharedFiles()).as("the refused record needs none").isZero();
    assertThat(importer.liveSharedFiles()).isZero();
  }

  /** One that is done meanwhile makes room, unless the machine has no time for it meanwhile. */
  @Test
  void recordBeyondTheEntries_waitsALittle() throws InterruptedException {
    long start = System.nanoTime();
    while (!recordsBeyondTheEntries()) {
      assertThat(System.nanoTime() - start)
          .as("refused each time")
          .isLessThan(TimeUnit.SECONDS.toNanos(40));
    }
  }

  /** Whether one record more than there are entries is made, room for which comes as it waits. */
  private boolean recordsBeyondTheEntries() throws InterruptedException {
    long event = exporter.events().eventCreate(0, INTERPROCESS);
    long opened =
        importer.sharing().ipcOpenEventHandle(0, exporter.sharing().ipcGetEventHandle(0, event));
    CountDownLatch go = new CountDownLatch(1);
    exporter.streams().launchHostFunc(0, out, () -> Latches.await(go));
    for (int i = 0; i < ENTRIES; i++) {
      exporter.events().eventRecord(0, event, out);
    }
    AtomicBoolean over = new AtomicBoolean();
    Thread recorder = Thread.currentThread();
    Thread other =
        Thread.ofPlatform()
            .start(() -> {
              while (recorder.getState() != Thread.State.TIMED_WAITING && !over.get()) {
                Thread.onSpinWait();
              }
              go.countDown();
            });
    try {
      exporter.events().eventRecord(0, event, out);
      return true;
    } catch (CudaException e) {
      assertThat(e.status()).isEqualTo(CudaStatus.NOT_READY);
      return false;
    } finally {
      over.set(true);
      other.join();
      importer.events().eventSynchronize(0, opened);
    }
  }

  /** What is mapped of a file of this process, by the drivers in it. */
  private static long mappedBytes(Object inode) throws IOException {
    try (Stream<String> mappings = Files.lines(Path.of("/proc/self/maps"))) {
      return mappings
          .map(line -> line.split(" +"))
          .filter(fields -> fields[4].equals(inode.toString()) && fields[5].startsWith("/memfd:"))
          .mapToLong(fields -> {
            String[] range = fields[0].split("-");
            return Long.parseUnsignedLong(range[1], 16) - Long.parseUnsignedLong(range[0], 16);
          })
          .sum();
    }
  }

  private static Object inode(int descriptor) throws IOException {
    return Files.getAttribute(Path.of("/proc/self/fd/" + descriptor), "unix:ino");
  }

  private static int descriptor(byte[] handle) {
    return ByteBuffer.wrap(handle).order(ByteOrder.LITTLE_ENDIAN).getInt(36);
  }

  @Test
  void plainMemory_isMappedNoLongerThanItIsUsed() throws IOException {
    long ours = exporter.memory().memAlloc(0, MIB);
    byte[] handle = exporter.sharing().ipcGetMemHandle(0, ours);
    Object inode = inode(descriptor(handle));
    fill(exporter, ours, 1, KIB, out);
    long alone = mappedBytes(inode);
    assertThat(alone).isGreaterThanOrEqualTo(MIB);
    long theirs = importer.sharing().ipcOpenMemHandle(0, handle);
    assertThat(read(importer, theirs)).isEqualTo((byte) 1);
    assertThat(mappedBytes(inode)).isGreaterThanOrEqualTo(alone + MIB);
    importer.sharing().ipcCloseMemHandle(0, theirs);
    assertThat(mappedBytes(inode)).isEqualTo(alone);
    exporter.memory().memFree(0, ours);
    assertThat(mappedBytes(inode)).isZero();
  }

  /** Whatever a program leaves to them, the machine has its memory again. */
  @Test
  void closedDrivers_leaveNothingMapped() throws IOException {
    long plain = exporter.memory().memAlloc(0, MIB);
    byte[] handle = exporter.sharing().ipcGetMemHandle(0, plain);
    long pool = pool(DEVICE);
    long pooled = allocate(pool, MIB);
    int ofPool = exporter.sharing().memPoolExportToShareableHandle(pool);
    List<Object> inodes = List.of(inode(descriptor(handle)), inode(ofPool));
    DESCRIPTORS.close(ofPool);
    byte[] pointer = exporter.sharing().memPoolExportPointer(pooled);
    fill(exporter, plain, 1, KIB, out);
    fill(exporter, pooled, 2, KIB, out);
    long theirs = importer.sharing().ipcOpenMemHandle(0, handle);
    assertThat(read(importer, theirs)).isEqualTo((byte) 1);
    long found = importer.sharing().memPoolImportPointer(imported(pool), pointer);
    assertThat(read(importer, found)).isEqualTo((byte) 2);
    for (Object inode : inodes) {
      assertThat(mappedBytes(inode)).isGreaterThanOrEqualTo(2 * MIB);
    }
    importer.close();
    exporter.close();
    for (Object inode : inodes) {
      assertThat(mappedBytes(inode)).isZero();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {DEVICE, HOST_NUMA})
  void pool_isMappedNoLongerThanItIsUsed(int location) throws IOException {
    long pool = pool(location);
    int descriptor = exporter.sharing().memPoolExportToShareableHandle(pool);
    Object inode = inode(descriptor);
    DESCRIPTORS.close(descriptor);
    long head = mappedBytes(inode);
    long ours = allocate(pool, MIB);
    fill(exporter, ours, 1, KIB, out);
    long alone = mappedBytes(inode);
    assertThat(alone).isGreaterThanOrEqualTo(head + MIB);
    long mapped = imported(pool);
    long theirs =
        importer
            .sharing()
            .memPoolImportPointer(mapped, exporter.sharing().memPoolExportPointer(ours));
    assertThat(read(importer, theirs)).isEqualTo((byte) 1);
    assertThat(mappedBytes(inode)).isGreaterThanOrEqualTo(alone + MIB);
    importer.ordered().memFreeAsync(0, theirs, in);
    importer.streams().streamSynchronize(0, in);
    importer.pools().memPoolDestroy(mapped);
    assertThat(mappedBytes(inode)).isEqualTo(alone);
    exporter.ordered().memFreeAsync(0, ours, out);
    exporter.streams().streamSynchronize(0, out);
    assertThat(mappedBytes(inode)).isEqualTo(head);
    exporter.pools().memPoolDestroy(pool);
    assertThat(mappedBytes(inode)).isZero();
  }

  @Test
  void event_isMappedNoLongerThanItIsThere() throws IOException {
    long event = exporter.events().eventCreate(0, INTERPROCESS);
    byte[] handle = exporter.sharing().ipcGetEventHandle(0, event);
    Object inode = inode(descriptor(handle));
    long alone = mappedBytes(inode);
    assertThat(alone).isPositive();
    long opened = importer.sharing().ipcOpenEventHandle(0, handle);
    assertThat(mappedBytes(inode)).isEqualTo(2 * alone);
    importer.events().eventDestroy(0, opened);
    assertThat(mappedBytes(inode)).isEqualTo(alone);
    exporter.events().eventDestroy(0, event);
    assertThat(mappedBytes(inode)).isZero();
  }

  @Test
  void descriptorOfNoPool_isRefused() {
    int closed = DESCRIPTORS.memoryFile("cuvette-closed", 1);
    DESCRIPTORS.close(closed);
    for (int number : new int[] {-1, Integer.MIN_VALUE, Integer.MAX_VALUE, closed}) {
      assertFails(
          CudaStatus.INVALID_VALUE,
          "descriptor: %d (expected: an open one)".formatted(number),
          () -> importer.sharing().memPoolImportFromShareableHandle(number));
    }
    for (int number = 0; number <= 2; number++) {
      if (DESCRIPTORS.isOpen(number) && !DESCRIPTORS.isMemoryFile(number)) {
        int standard = number;
        assertFails(
            CudaStatus.INVALID_VALUE,
            "descriptor: %d is a file that can get shorter".formatted(standard),
            () -> importer.sharing().memPoolImportFromShareableHandle(standard));
      }
    }
    for (long bytes : new long[] {0, 100, 4096}) {
      int small = DESCRIPTORS.memoryFile("cuvette-small", bytes);
      assertFails(
          CudaStatus.INVALID_VALUE,
          "a file of %d bytes (expected".formatted(bytes),
          () -> importer.sharing().memPoolImportFromShareableHandle(small));
      DESCRIPTORS.close(small);
    }
    assertThat(importer.liveSharedFiles()).isZero();
  }

  /** The bytes that mappings of shared files of some size take. */
  private static long residentBytes(long bytes) throws IOException {
    long kib = 0;
    boolean isShared = false;
    boolean isThatLarge = false;
    for (String line : Files.readAllLines(Path.of("/proc/self/smaps"))) {
      String[] words = line.split(" +", -1);
      if (words[0].contains("-")) {
        isShared = line.contains("memfd:cuvette-sim");
      } else if (words[0].equals("Size:")) {
        isThatLarge = Long.parseLong(words[1]) * KIB == bytes;
      } else if (words[0].equals("Rss:") && isShared && isThatLarge) {
        kib += Long.parseLong(words[1]);
      }
    }
    return kib * KIB;
  }

  /** As that of a GPU: a program may allocate much and use little of it. */
  @Test
  void sharedMemoryThatNobodyTouched_takesNoRoom() throws IOException {
    long bytes = 36 * MIB + 8 * KIB;
    long ours = allocate(pool(DEVICE), bytes);
    fill(exporter, ours + bytes / 2, 3, 1, out);
    assertThat(read(exporter, ours + bytes / 2)).isEqualTo((byte) 3);
    assertThat(read(exporter, ours + bytes - 1)).isEqualTo((byte) 0xA5);
    assertThat(residentBytes(bytes)).isBetween(KIB, 4 * MIB);
  }

  /** As many as no process has addresses for. */
  @Test
  void importThatCannotBeMapped_keepsNoFile() {
    AllocationProperties shared = AllocationProperties.ofDevice(0, MemHandleType.FILE_DESCRIPTOR);
    try (SimulatedDriver from = SimulatedDriver.open(HUGE)) {
      VirtualCalls made = from.virtual();
      int descriptor = made.memExportToShareableHandle(made.memCreate(HUGE_BYTES, shared));
      try {
        assertLastKeepsNoFile(driver -> driver.virtual().memImportFromShareableHandle(descriptor));
      } finally {
        DESCRIPTORS.close(descriptor);
      }
      assertThat(from.liveSharedFiles()).isEqualTo(1);
    }
  }

  @Test
  void memoryThatCannotBeMapped_isNotShared_andKeepsNoFile() {
    assertLastKeepsNoFile(
        driver -> driver.sharing().ipcGetMemHandle(0, driver.memory().memAlloc(0, HUGE_BYTES)));
  }

  @Test
  void openedMemoryThatCannotBeMapped_keepsNoFile() {
    try (SimulatedDriver from = SimulatedDriver.open(HUGE)) {
      byte[] handle = from.sharing().ipcGetMemHandle(0, from.memory().memAlloc(0, HUGE_BYTES));
      assertLastKeepsNoFile(driver -> driver.sharing().ipcOpenMemHandle(0, handle));
    }
  }

  @Test
  void memoryOfAPoolThatCannotBeMapped_keepsNoFile() {
    try (SimulatedDriver from = SimulatedDriver.open(HUGE)) {
      long pool = from.pools().memPoolCreate(new PoolProperties(1, 1, DEVICE, 0, 0));
      from.pools().memPoolSetAccess(pool, 1, new int[] {0}, 3);
      int descriptor = from.sharing().memPoolExportToShareableHandle(pool);
      try {
        byte[] pointer =
            from.sharing()
                .memPoolExportPointer(from.ordered().memAllocFromPoolAsync(0, HUGE_BYTES, pool, 0));
        assertLastKeepsNoFile(driver -> {
          long mapped = driver.sharing().memPoolImportFromShareableHandle(descriptor);
          try {
            long _ = driver.sharing().memPoolImportPointer(mapped, pointer);
          } finally {
            driver.pools().memPoolDestroy(mapped);
          }
        });
      } finally {
        DESCRIPTORS.close(descriptor);
      }
    }
  }

  /** Has drivers map that much, one after the other, until one is refused. */
  private static void assertLastKeepsNoFile(Consumer<SimulatedDriver> maps) {
    List<SimulatedDriver> drivers = new ArrayList<>();
    try {
      CudaException refused = null;
      while (refused == null && drivers.size() < MOST_MAPPED) {
        drivers.add(SimulatedDriver.open(HUGE));
        refused = catchThrowableOfType(CudaException.class, () -> maps.accept(drivers.getLast()));
      }
      assertThat(refused).hasMessageContaining("mapping 8796093022208 bytes of shared memory");
      assertThat(drivers.getLast().liveSharedFiles()).isZero();
    } finally {
      drivers.forEach(SimulatedDriver::close);
    }
  }
}

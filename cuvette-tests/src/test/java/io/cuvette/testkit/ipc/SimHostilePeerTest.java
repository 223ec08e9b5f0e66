package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.SimulatedDriver;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * A process that shares memory and events, and then writes anything into the files behind them and
 * into its handles: what comes of that is a refusal of the driver, or other bytes of what it
 * shared.
 */
@Timeout(120)
class SimHostilePeerTest extends SimSharingBase {
  private static final int DRIVER = 24;
  private static final int PID = 32;
  private static final int DESCRIPTOR = 36;
  private static final int DATA_BYTES = 64;
  private static final int HEAD = 4096;
  private static final int ENTRY = 24;
  private static final int RING_ENTRIES = 1024;
  private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(20);
  private static final long SEED = Long.getLong("cuvette.seed", 1);

  private final SplittableRandom random = new SplittableRandom(SEED);

  private static ByteBuffer fields(byte[] handle) {
    return ByteBuffer.wrap(handle).order(ByteOrder.LITTLE_ENDIAN);
  }

  /** A handle with other fields, and a checksum that is right. */
  private static byte[] forged(byte[] handle, Consumer<ByteBuffer> change) {
    byte[] forged = handle.clone();
    change.accept(fields(forged));
    CRC32C sum = new CRC32C();
    sum.update(forged, 0, 60);
    return fields(forged).putInt(60, (int) sum.getValue()).array();
  }

  /** The file behind a handle of this process, as whoever opened it has it. */
  private static MemorySegment file(byte[] handle, Arena arena) {
    return file(fields(handle).getInt(DESCRIPTOR), 3 << 20, arena);
  }

  private static MemorySegment file(int descriptor, long most, Arena arena) {
    Path path = Path.of("/proc/self/fd/" + descriptor);
    try (FileChannel file =
        FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      long bytes = Math.min(file.size(), most);
      return file.map(FileChannel.MapMode.READ_WRITE, 0, bytes, arena);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void assertOpensNothing(String why, byte[] handle) {
    assertFails(
        CudaStatus.INVALID_VALUE, why, () -> importer.sharing().ipcOpenMemHandle(0, handle));
    assertThat(importer.liveSharedFiles()).isZero();
    assertThat(importer.liveAllocations()).isZero();
  }

  @Test
  void fileThatItsOwnerCanShorten_isNotMapped(@TempDir Path folder) throws IOException {
    byte[] handle = exporter.sharing().ipcGetMemHandle(0, exporter.memory().memAlloc(0, 8192));
    byte[] event =
        exporter.sharing().ipcGetEventHandle(0, exporter.events().eventCreate(0, INTERPROCESS));
    for (byte[] each : new byte[][] {handle, event}) {
      Path copy = folder.resolve("copy" + each.hashCode());
      Files.copy(Path.of("/proc/self/fd/" + fields(each).getInt(DESCRIPTOR)), copy);
      int descriptor = descriptorOf(copy);
      byte[] forged = forged(each, fields -> fields.putInt(DESCRIPTOR, descriptor));
      assertFails(
          CudaStatus.INVALID_VALUE,
          "sealed memory",
          each == handle
              ? () -> importer.sharing().ipcOpenMemHandle(0, forged)
              : () -> importer.sharing().ipcOpenEventHandle(0, forged));
      DESCRIPTORS.close(descriptor);
    }
    assertThat(importer.liveSharedFiles()).isZero();
  }

  /** Makes the file empty and locks it, which nobody minds here, and fills it again. */
  private static int descriptorOf(Path file) throws IOException {
    byte[] content = Files.readAllBytes(file);
    Files.write(file, new byte[0]);
    int descriptor = DESCRIPTORS.lock(file.toString(), Duration.ZERO);
    Files.write(file, content);
    return descriptor;
  }

  @Test
  void sizeThatNoDeviceHas_isRefusedBeforeItIsMapped() {
    byte[] handle = exporter.sharing().ipcGetMemHandle(0, exporter.memory().memAlloc(0, 1));
    for (long bytes : new long[] {1L << 46, 64 * MIB + 1, 1L << 60}) {
      int large = DESCRIPTORS.memoryFile("large", HEAD + bytes);
      try (Arena arena = Arena.ofShared()) {
        MemorySegment head = file(large, HEAD, arena);
        head.copyFrom(file(handle, arena).asSlice(0, HEAD));
        head.set(ValueLayout.JAVA_LONG, DATA_BYTES, bytes);
        byte[] forged = forged(handle, fields -> fields.putInt(DESCRIPTOR, large));
        assertOpensNothing(bytes + " bytes, where a device has " + 64 * MIB, forged);
        head.set(ValueLayout.JAVA_LONG, DATA_BYTES, 1);
        assertOpensNothing("claims 1 of data", forged);
      }
      DESCRIPTORS.close(large);
    }
  }

  @Test
  void fileOfThisProcess_isNotOpened_whateverTheHandleSays() {
    byte[] handle = importer.sharing().ipcGetMemHandle(0, importer.memory().memAlloc(0, 64));
    byte[] event =
        importer.sharing().ipcGetEventHandle(0, importer.events().eventCreate(0, INTERPROCESS));
    Consumer<ByteBuffer> change = fields -> fields.putLong(DRIVER, 4711);
    CudaStatus status = CudaStatus.INVALID_CONTEXT;
    assertFails(
        status,
        "by this process",
        () -> importer.sharing().ipcOpenMemHandle(0, forged(handle, change)));
    assertFails(
        status,
        "by this process",
        () -> importer.sharing().ipcOpenEventHandle(0, forged(event, change)));
    assertThat(importer.liveSharedFiles()).isEqualTo(2);
  }

  /** Else who comes first could stand for memory of a third process. */
  @Test
  void identityOfAnotherFile_isNoMoreThanAClaim() {
    try (SimulatedDriver liar = open("devices=1");
        Arena arena = Arena.ofShared()) {
      long honest = exporter.memory().memAlloc(0, 64);
      fill(exporter, honest, 1, 64, out);
      byte[] handle = exporter.sharing().ipcGetMemHandle(0, honest);
      long lie = liar.memory().memAlloc(0, 64);
      fill(liar, lie, 2, 64, 0);
      byte[] liars = liar.sharing().ipcGetMemHandle(0, lie);
      int descriptor = fields(liars).getInt(DESCRIPTOR);
      file(liars, arena).asSlice(16, 16).copyFrom(file(handle, arena).asSlice(16, 16));
      byte[] forged = forged(handle, fields -> fields.putInt(DESCRIPTOR, descriptor));
      long first = importer.sharing().ipcOpenMemHandle(0, forged);
      long second = importer.sharing().ipcOpenMemHandle(0, handle);
      assertThat(second).isNotEqualTo(first);
      assertThat(read(importer, first)).isEqualTo((byte) 2);
      assertThat(read(importer, second)).isEqualTo((byte) 1);
    }
  }

  @Test
  void tableThatLeadsOutOfTheFile_isRefused() {
    long pool = pool(DEVICE);
    long ours = allocate(pool, KIB);
    long mapped = imported(pool);
    byte[] handle = exporter.sharing().memPoolExportPointer(ours);
    int descriptor = exporter.sharing().memPoolExportToShareableHandle(pool);
    try (Arena arena = Arena.ofShared()) {
      MemorySegment place = file(descriptor, 3 << 20, arena).asSlice(HEAD, ENTRY);
      long[][] wrong = {
        {-4096, 512}, {Long.MIN_VALUE, 512}, {Long.MAX_VALUE, 512}, {1L << 50, 512}, {1, 512},
        {0, -1}, {0, 0}, {0, Long.MAX_VALUE}, {0, 64 * MIB + 1}, {4096, Long.MAX_VALUE - 4096}
      };
      for (long[] each : wrong) {
        place.set(ValueLayout.JAVA_LONG, 8, each[0]);
        place.set(ValueLayout.JAVA_LONG, 16, each[1]);
        assertFails(
            CudaStatus.INVALID_VALUE,
            "handle: ",
            () -> importer.sharing().memPoolImportPointer(mapped, handle));
      }
      // What the exporter itself wrote there, it does not read.
      place.set(ValueLayout.JAVA_LONG, 0, -8);
      exporter.ordered().memFreeAsync(0, ours, out);
      exporter.streams().streamSynchronize(0, out);
      byte[] next = exporter.sharing().memPoolExportPointer(allocate(pool, KIB));
      long theirs = importer.sharing().memPoolImportPointer(mapped, next);
      fill(importer, theirs, 4, KIB, in);
      importer.ordered().memFreeAsync(0, theirs, in);
    }
    DESCRIPTORS.close(descriptor);
  }

  /** The entry that a record takes is that of one which nobody ends. */
  @Test
  void recordOfAnEventWhoseRingIsFull_isRefusedSoon() {
    long event = exporter.events().eventCreate(0, INTERPROCESS);
    byte[] handle = exporter.sharing().ipcGetEventHandle(0, event);
    long opened = importer.sharing().ipcOpenEventHandle(0, handle);
    try (Arena arena = Arena.ofShared()) {
      MemorySegment ring = file(handle, arena).asSlice(HEAD);
      ring.set(ValueLayout.JAVA_LONG, 0, RING_ENTRIES);
      for (long number = 1; number <= RING_ENTRIES; number++) {
        MemorySegment entry = ring.asSlice(64 + number % RING_ENTRIES * 32, 32);
        entry.set(ValueLayout.JAVA_LONG, 0, number);
        entry.set(ValueLayout.JAVA_INT, 8, fields(handle).getInt(PID));
        entry.set(ValueLayout.JAVA_INT, 12, 0);
        entry.set(ValueLayout.JAVA_LONG, 16, fields(handle).getLong(40));
      }
      for (SimulatedDriver each : new SimulatedDriver[] {exporter, importer}) {
        long recorded = each == exporter ? event : opened;
        long stream = each == exporter ? out : in;
        assertFails(
            CudaStatus.NOT_READY,
            "none was done (expected: fewer)",
            () -> each.events().eventRecord(0, recorded, stream));
        each.streams().streamSynchronize(0, stream);
      }
    }
    importer.events().eventDestroy(0, opened);
    assertThat(importer.liveSharedFiles()).as("the refused record has none").isZero();
  }

  @Test
  void ringOfGarbage_isNoIndex() {
    long event = exporter.events().eventCreate(0, INTERPROCESS);
    byte[] handle = exporter.sharing().ipcGetEventHandle(0, event);
    long opened = importer.sharing().ipcOpenEventHandle(0, handle);
    long[] odd = {-1, Long.MIN_VALUE, Long.MAX_VALUE, -RING_ENTRIES, RING_ENTRIES, 1L << 40};
    try (Arena arena = Arena.ofShared()) {
      MemorySegment ring = file(handle, arena).asSlice(HEAD);
      for (long last : odd) {
        for (long newest : odd) {
          ring.set(ValueLayout.JAVA_LONG, 0, last);
          ring.set(ValueLayout.JAVA_LONG, 8, newest);
          importer.streams().streamWaitEvent(0, in, opened);
          onlyRefusals(() -> importer.events().eventQuery(0, opened));
          onlyRefusals(() -> exporter.events().eventRecord(0, event, out));
          onlyRefusals(() -> importer.events().eventRecord(0, opened, in));
        }
      }
    }
    exporter.streams().streamSynchronize(0, out);
  }

  private static void onlyRefusals(Runnable call) {
    try {
      call.run();
    } catch (CudaException e) {
      assertThat(e.status()).as("seed=%d: %s", SEED, e).isNotEqualTo(CudaStatus.UNKNOWN);
    }
  }

  /** Handles with fields of all kinds, and a right checksum. */
  @Test
  void handlesMadeUp_areRefused_orOfWhatWasShared() {
    long pool = pool(DEVICE);
    long mapped = imported(pool);
    byte[] pointer = exporter.sharing().memPoolExportPointer(allocate(pool, KIB));
    byte[] memory = exporter.sharing().ipcGetMemHandle(0, exporter.memory().memAlloc(0, KIB));
    byte[] event =
        exporter.sharing().ipcGetEventHandle(0, exporter.events().eventCreate(0, INTERPROCESS));
    for (int i = 0; i < 3000; i++) {
      byte[] altered = altered(i % 3 == 0 ? pointer : i % 3 == 1 ? memory : event);
      onlyRefusals(() -> {
        long address = importer.sharing().memPoolImportPointer(mapped, altered);
        fill(importer, address, 1, KIB, in);
        importer.memory().memFree(0, address);
      });
      onlyRefusals(() -> {
        long address = importer.sharing().ipcOpenMemHandle(0, altered);
        fill(importer, address, 1, KIB, in);
        importer.sharing().ipcCloseMemHandle(0, address);
      });
      onlyRefusals(() ->
          importer.events().eventDestroy(0, importer.sharing().ipcOpenEventHandle(0, altered)));
    }
    assertThat(importer.liveAllocations()).as("seed=%d", SEED).isZero();
    assertThat(importer.liveSharedFiles()).as("the pool; seed=%d", SEED).isEqualTo(1);
  }

  private byte[] altered(byte[] handle) {
    return forged(
        handle,
        fields -> {
          int at = random.nextInt(60);
          switch (random.nextInt(4)) {
            case 0 -> fields.put(at, (byte) random.nextInt());
            case 1 -> fields.put(at, (byte) (fields.get(at) ^ 1 << random.nextInt(8)));
            case 2 -> fields.putInt(4 * (at / 4), random.nextInt());
            default -> fields.putLong(Math.min(52, 8 * (at / 8)), random.nextLong());
          }
        });
  }

  /** What is written into shared files while both use them. */
  @Test
  void filesWrittenWhileTheyAreUsed_endNothingButWhatTheyStandFor() throws Exception {
    long pool = pool(DEVICE);
    long mapped = imported(pool);
    long event = exporter.events().eventCreate(0, INTERPROCESS);
    byte[] handle = exporter.sharing().ipcGetEventHandle(0, event);
    long opened = importer.sharing().ipcOpenEventHandle(0, handle);
    long plain = exporter.memory().memAlloc(0, KIB);
    byte[] memory = exporter.sharing().ipcGetMemHandle(0, plain);
    int descriptor = exporter.sharing().memPoolExportToShareableHandle(pool);
    AtomicBoolean over = new AtomicBoolean();
    CountDownLatch begun = new CountDownLatch(1);
    try (Arena arena = Arena.ofShared()) {
      MemorySegment[] files = {
        file(descriptor, HEAD + 100 * ENTRY, arena),
        file(handle, arena).asSlice(0, HEAD + 2000),
        file(memory, arena).asSlice(0, HEAD)
      };
      SplittableRandom garbage = random.split();
      Thread writer =
          Thread.ofPlatform()
              .start(() -> {
                while (!over.get()) {
                  MemorySegment file = files[garbage.nextInt(files.length)];
                  long at = garbage.nextLong(file.byteSize() / 8) * 8;
                  long value =
                      garbage.nextInt(3) == 0 ? garbage.nextLong() : garbage.nextInt(-2, 5000);
                  file.set(ValueLayout.JAVA_LONG, at, value);
                  begun.countDown();
                }
              });
      begun.await();
      long start = System.nanoTime();
      // A record waits where the ring looks full, until the writer comes to write there again.
      for (int round = 0; round < 300 && System.nanoTime() - start < LONG_NANOS; round++) {
        long ours = allocate(pool, 1 + random.nextInt(100_000));
        onlyRefusals(() -> use(mapped, exporter.sharing().memPoolExportPointer(ours)));
        exporter.ordered().memFreeAsync(0, ours, out);
        onlyRefusals(() -> exporter.events().eventRecord(0, event, out));
        onlyRefusals(() -> importer.events().eventQuery(0, opened));
        onlyRefusals(() ->
            importer
                .sharing()
                .ipcCloseMemHandle(0, importer.sharing().ipcOpenMemHandle(0, memory)));
      }
      over.set(true);
      writer.join();
    }
    fill(exporter, plain, 5, KIB, out);
    assertThat(read(exporter, plain)).isEqualTo((byte) 5);
    long fine = importer.memory().memAlloc(0, KIB);
    fill(importer, fine, 6, KIB, 0);
    assertThat(read(importer, fine)).isEqualTo((byte) 6);
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> importer.memory().memAlloc(0, 1L << 40)); // and its device still works
    DESCRIPTORS.close(descriptor);
  }

  private void use(long pool, byte[] handle) {
    long theirs = importer.sharing().memPoolImportPointer(pool, handle);
    importer.transfers().memsetD8Async(0, theirs, (byte) 1, 1, in);
    importer.ordered().memFreeAsync(0, theirs, in);
    importer.streams().streamSynchronize(0, in);
  }
}

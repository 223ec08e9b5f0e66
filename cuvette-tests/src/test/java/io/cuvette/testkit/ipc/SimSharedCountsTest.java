package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.IpcCalls;
import io.cuvette.driver.MemHandleType;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.testkit.support.HeldBySystem;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What two drivers say of memory that both have, how often each has it, and what is left of it. */
class SimSharedCountsTest extends SimSharingBase {
  private static final long BYTES = 2 * MIB;
  private static final int DRIVER_ID = 24;

  /** Each way in which memory is shared. */
  enum Way {
    POOL,
    HOST_POOL,
    HANDLE,
    PAGES
  }

  /** Memory of the exporter and as the importer sees it, and what both need to end it. */
  private record Both(Way way, long ours, long theirs, long pool, long imported) {}

  private Both share(Way way) {
    return switch (way) {
      case POOL, HOST_POOL -> {
        long pool = pool(way == Way.POOL ? DEVICE : HOST_NUMA);
        long ours = allocate(pool, BYTES);
        byte[] handle = exporter.sharing().memPoolExportPointer(ours);
        long imported = imported(pool);
        long theirs = importer.sharing().memPoolImportPointer(imported, handle);
        yield new Both(way, ours, theirs, pool, imported);
      }
      case HANDLE -> {
        long ours = exporter.memory().memAlloc(0, BYTES);
        byte[] handle = exporter.sharing().ipcGetMemHandle(0, ours);
        yield new Both(way, ours, importer.sharing().ipcOpenMemHandle(0, handle), 0, 0);
      }
      case PAGES -> {
        long made =
            exporter
                .virtual()
                .memCreate(BYTES, AllocationProperties.ofDevice(0, MemHandleType.FILE_DESCRIPTOR));
        int descriptor = exporter.virtual().memExportToShareableHandle(made);
        long seen = importer.virtual().memImportFromShareableHandle(descriptor);
        DESCRIPTORS.close(descriptor);
        yield new Both(way, map(exporter, made), map(importer, seen), made, seen);
      }
    };
  }

  private static long map(SimulatedDriver driver, long handle) {
    long range = driver.virtual().memAddressReserve(BYTES, 0, 0);
    driver.virtual().memMap(range, BYTES, 0, handle);
    driver.virtual().memSetAccess(range, BYTES, DEVICE, new int[] {0}, 3);
    return range;
  }

  private void end(SimulatedDriver driver, Both both) {
    boolean isExporter = driver == exporter;
    long address = isExporter ? both.ours : both.theirs;
    long handle = isExporter ? both.pool : both.imported;
    switch (both.way) {
      case POOL, HOST_POOL -> {
        driver.ordered().memFreeAsync(0, address, 0);
        driver.pools().memPoolDestroy(handle);
      }
      case HANDLE -> {
        if (isExporter) {
          driver.memory().memFree(0, address);
        } else {
          driver.sharing().ipcCloseMemHandle(0, address);
        }
      }
      case PAGES -> {
        driver.virtual().memUnmap(address, BYTES);
        driver.virtual().memAddressFree(address, BYTES);
        driver.virtual().memRelease(handle);
      }
    }
    driver.streams().streamSynchronize(0, 0);
  }

  private static List<Long> counts(SimulatedDriver driver) {
    return List.of(
        driver.liveBytes(0),
        driver.liveBytes(1),
        driver.liveHostBytes(),
        driver.devices().memGetInfo(0).freeBytes(),
        driver.devices().memGetInfo(1).freeBytes());
  }

  private static void assertNothing(SimulatedDriver driver, List<Long> before) {
    assertThat(counts(driver)).isEqualTo(before);
    assertThat(driver.liveAllocations()).isZero();
    assertThat(driver.livePools()).isZero();
    assertThat(driver.liveSharedFiles()).isZero();
    assertThat(driver.report()).doesNotContain("memory", "pool", "mapping");
  }

  @ParameterizedTest
  @EnumSource
  void memory_countsWhereItWasMade_asLongAsThatDriverHasIt(Way way) {
    List<Long> empty = counts(exporter);
    Both both = share(way);
    long onDevice = way == Way.HOST_POOL ? 0 : BYTES;
    List<Long> one =
        List.of(onDevice, 0L, BYTES - onDevice, empty.get(3) - onDevice, empty.getLast());
    assertThat(counts(exporter)).isEqualTo(one);
    assertThat(counts(importer)).isEqualTo(empty);
    int addresses = way == Way.PAGES ? 0 : 1;
    assertThat(exporter.liveAllocations()).isEqualTo(addresses);
    assertThat(importer.liveAllocations()).isEqualTo(addresses);
    assertThat(exporter.report()).doesNotContain("imported");
    assertThat(importer.report().lines().filter(line -> line.startsWith("imported ")))
        .hasSize(way == Way.HANDLE ? 1 : 2 * addresses);
    end(importer, both);
    assertNothing(importer, empty);
    assertThat(counts(exporter)).isEqualTo(one);
    end(exporter, both);
    assertNothing(exporter, empty);
  }

  /** Whatever the program left: what the system gave is given back. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void closedDrivers_haveNothingOfTheSystem(boolean isExporterFirst) throws IOException {
    long before = sharedMappings(); // of tests before
    long open = sharedDescriptors();
    for (Way way : Way.values()) {
      Both both = share(way);
      fill(exporter, both.ours, 4, BYTES, out);
      assertThat(read(importer, both.theirs + BYTES - 1)).isEqualTo((byte) 4);
    }
    allocate(pool(DEVICE), BYTES);
    fill(exporter, allocate(pool(DEVICE), BYTES), 1, BYTES, out);
    assertThat(sharedMappings()).isGreaterThan(before);
    (isExporterFirst ? exporter : importer).close();
    (isExporterFirst ? importer : exporter).close();
    assertThat(sharedMappings()).isLessThanOrEqualTo(before);
    assertThat(sharedDescriptors()).isLessThanOrEqualTo(open);
  }

  private static long sharedDescriptors() {
    return HeldBySystem.kinds().entrySet().stream()
        .filter(kind -> kind.getKey().contains("cuvette-sim"))
        .mapToInt(Map.Entry::getValue)
        .sum();
  }

  private static long sharedMappings() throws IOException {
    return HeldBySystem.mappings().stream().filter(line -> line.contains("memfd:cuvette")).count();
  }

  private long imported(SimulatedDriver by, long pool) {
    int descriptor = exporter.sharing().memPoolExportToShareableHandle(pool);
    try {
      return by.sharing().memPoolImportFromShareableHandle(descriptor);
    } finally {
      DESCRIPTORS.close(descriptor);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {DEVICE, HOST_NUMA})
  void poolThatIsImportedAgain_isTheSame_andAsOftenToBeDestroyed(int location) {
    List<Long> pools = List.of(pool(location), pool(location), pool(location));
    List<Long> first = pools.stream().map(pool -> imported(importer, pool)).toList();
    assertThat(first).doesNotHaveDuplicates();
    for (int i = 2; i >= 0; i--) {
      assertThat(imported(importer, pools.get(i))).isEqualTo(first.get(i));
    }
    assertThat(importer.livePools()).isEqualTo(3);
    long own = imported(exporter, pools.getFirst());
    assertThat(pools).doesNotContain(own);
    exporter.pools().memPoolDestroy(own);
    for (int i = 0; i < 3; i++) {
      long pool = first.get(i);
      importer.pools().memPoolDestroy(pool);
      assertThat(importer.livePools()).isEqualTo(3 - i);
      byte[] handle = exporter.sharing().memPoolExportPointer(allocate(pools.get(i), KIB));
      long theirs = importer.sharing().memPoolImportPointer(pool, handle);
      importer.pools().memPoolDestroy(pool);
      assertThat(importer.livePools()).isEqualTo(2 - i);
      assertFails(CudaStatus.INVALID_VALUE, "pool: ", () -> importer.pools().memPoolDestroy(pool));
      importer.memory().memFree(0, theirs);
    }
    assertThat(importer.liveAllocations()).isZero();
  }

  /** What its exporter freed covers whatever was in the target, and only there. */
  @Test
  void copyOfMemoryThatIsGone_writesWhatNobodyWrote() {
    Both gone = share(Way.POOL);
    fill(exporter, gone.ours, 8, BYTES, out);
    exporter.ordered().memFreeAsync(0, gone.ours, out);
    exporter.streams().streamSynchronize(0, out);
    long pooled = importer.ordered().memAllocAsync(0, KIB, in);
    importer.streams().streamSynchronize(0, in);
    long[] targets = {
      importer.memory().memAlloc(0, KIB),
      pooled,
      importer.memory().memHostAlloc(0, KIB, 0).address(),
      importer.memory().memAllocManaged(0, KIB, 1).address()
    };
    byte[] expected = new byte[(int) KIB];
    Arrays.fill(expected, (byte) 3);
    Arrays.fill(expected, 100, 800, (byte) 0xA5);
    for (long target : targets) {
      fill(importer, target, 3, KIB, in);
      importer.transfers().memcpyAsync(0, target + 100, gone.theirs + 7, 700, in);
      importer.streams().streamSynchronize(0, in);
      assertThat(read(importer, target, (int) KIB)).isEqualTo(expected);
    }
  }

  /** Whoever says who made a handle: the file is known. */
  @Test
  void handleOfItsOwn_isKnown_whateverItSays() {
    long memory = exporter.memory().memAlloc(0, KIB);
    long event = exporter.events().eventCreate(0, INTERPROCESS);
    byte[] ofMemory = asIfOfAnother(exporter.sharing().ipcGetMemHandle(0, memory));
    byte[] ofEvent = asIfOfAnother(exporter.sharing().ipcGetEventHandle(0, event));
    for (int i = 0; i < 2; i++) {
      CudaStatus status = CudaStatus.INVALID_CONTEXT;
      String text = "made by this process";
      assertFails(status, text, () -> exporter.sharing().ipcOpenMemHandle(0, ofMemory));
      assertFails(status, text, () -> exporter.sharing().ipcOpenEventHandle(0, ofEvent));
      assertThat(exporter.liveSharedFiles()).isEqualTo(2);
    }
    long theirs = importer.sharing().ipcOpenMemHandle(0, ofMemory);
    assertThat(importer.sharing().ipcOpenMemHandle(0, ofMemory)).isEqualTo(theirs);
    long opened = importer.sharing().ipcOpenEventHandle(0, ofEvent);
    importer.events().eventDestroy(0, opened);
  }

  private static byte[] asIfOfAnother(byte[] handle) {
    ByteBuffer forged = ByteBuffer.wrap(handle.clone()).order(ByteOrder.LITTLE_ENDIAN);
    forged.putLong(DRIVER_ID, forged.getLong(DRIVER_ID) + 1);
    CRC32C sum = new CRC32C();
    sum.update(forged.array(), 0, IpcCalls.HANDLE_BYTES - Integer.BYTES);
    return forged.putInt(IpcCalls.HANDLE_BYTES - Integer.BYTES, (int) sum.getValue()).array();
  }
}

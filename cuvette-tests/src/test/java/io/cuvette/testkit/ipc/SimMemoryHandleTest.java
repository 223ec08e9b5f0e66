package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;

/** Handles of plain allocations, opened by another simulated driver. */
class SimMemoryHandleTest extends SimSharingBase {
  private static final int GLOBAL = 0;

  /** Where a handle has its kind, behind what it begins with and the version. */
  private static final int KIND = 6;

  /** Where a handle has the identity of its file. */
  private static final int FILE = 8;

  private final long ours = exporter.memory().memAlloc(0, 100_000);

  @Test
  void writes_areSeenBothWays_thoseFromBeforeToo() {
    exporter.transfers().memsetD8Async(0, ours + 70_000, (byte) 1, 30_000, out);
    exporter.streams().streamSynchronize(0, out);
    exporter.transfers().memsetD8Async(0, ours, (byte) 2, 10, out);
    byte[] handle = exporter.sharing().ipcGetMemHandle(0, ours + 50_000);
    exporter.streams().streamSynchronize(0, out);
    long theirs = importer.sharing().ipcOpenMemHandle(0, handle);
    assertThat(read(importer, theirs, 11)).containsExactly(2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0xA5);
    assertThat(read(importer, theirs + 69_999, 2)).containsExactly(0xA5, 1);
    assertThat(read(importer, theirs + 99_999)).isEqualTo((byte) 1);
    fill(importer, theirs + 20, 3, 5, in);
    assertThat(read(exporter, ours + 24, 2)).containsExactly(3, 0xA5);
    assertThat(importer.memory().pointerGetAttribute(0, 12, theirs + 5)).isEqualTo(100_000);
    assertThat(importer.memory().pointerGetAttribute(0, 10, theirs)).as("legacy IPC").isZero();
    assertThat(exporter.memory().pointerGetAttribute(0, 10, ours)).as("legacy IPC").isEqualTo(1);
    assertThat(importer.liveBytes(0)).isZero();
    assertThat(exporter.liveBytes(0)).isEqualTo(100_352);
  }

  /** As with the driver's flag: the opening lets the device in. */
  @Test
  void memoryOfAnotherDevice_isOpenToTheOneThatOpensIt_withoutPeerAccess() {
    byte[] handle = exporter.sharing().ipcGetMemHandle(0, ours);
    long theirs = importer.sharing().ipcOpenMemHandle(1, handle);
    importer.transfers().memsetD8Async(1, theirs, (byte) 4, 9, 0);
    importer.streams().streamSynchronize(1, 0);
    assertThat(read(exporter, ours + 8)).isEqualTo((byte) 4);
    importer.sharing().ipcCloseMemHandle(1, theirs);
  }

  @Test
  void handleOpenedTwice_isOneAddress_untilItIsClosedTwice() {
    byte[] handle = exporter.sharing().ipcGetMemHandle(0, ours);
    assertThat(exporter.sharing().ipcGetMemHandle(0, ours + 1)).isEqualTo(handle);
    long theirs = importer.sharing().ipcOpenMemHandle(0, handle);
    assertThat(importer.sharing().ipcOpenMemHandle(0, handle)).isEqualTo(theirs);
    assertThat(importer.report()).contains("imported DEVICE memory");
    importer.sharing().ipcCloseMemHandle(0, theirs);
    fill(importer, theirs, 1, 1, in);
    importer.sharing().ipcCloseMemHandle(0, theirs);
    assertThat(importer.liveAllocations()).isZero();
    assertThat(importer.liveBytes(0)).isZero();
    assertThat(importer.liveSharedFiles()).isZero();
    assertFails(
        CudaStatus.INVALID_VALUE,
        "was freed",
        () -> importer.sharing().ipcCloseMemHandle(0, theirs));
    long again = importer.sharing().ipcOpenMemHandle(0, handle);
    assertThat(read(importer, again)).isEqualTo((byte) 1);
  }

  @Test
  void close_waitsForTheWorkThatUsesTheMemory() {
    long theirs =
        importer.sharing().ipcOpenMemHandle(0, exporter.sharing().ipcGetMemHandle(0, ours));
    importer.transfers().memsetD8Async(0, theirs, (byte) 9, 100_000, in);
    importer.sharing().ipcCloseMemHandle(0, theirs);
    assertThat(read(exporter, ours + 99_999)).isEqualTo((byte) 9);
    importer.streams().streamSynchronize(0, in);
  }

  @Test
  void freedMemory_staysTheImporters_butIsNotOpenedAgain() {
    byte[] handle = exporter.sharing().ipcGetMemHandle(0, ours);
    fill(exporter, ours, 5, 8, out);
    long theirs = importer.sharing().ipcOpenMemHandle(0, handle);
    exporter.memory().memFree(0, ours);
    assertThat(read(importer, theirs)).isEqualTo((byte) 5);
    assertThat(exporter.liveSharedFiles()).isZero();
    importer.sharing().ipcCloseMemHandle(0, theirs);
    CudaStatus status = CudaStatus.INVALID_VALUE;
    assertFails(status, "freed", () -> importer.sharing().ipcOpenMemHandle(0, handle));
    // The descriptor's number now stands for something else.
    byte[] other = exporter.sharing().ipcGetMemHandle(0, exporter.memory().memAlloc(0, 8));
    assertThat(other).isNotEqualTo(handle);
    assertFails(status, "freed", () -> importer.sharing().ipcOpenMemHandle(0, handle));
    // One with the number of the file's descriptor, and sound but for the file's identity.
    byte[] forged = forged(other, FILE, 1);
    assertFails(status, "freed", () -> importer.sharing().ipcOpenMemHandle(0, forged));
    assertThat(importer.liveSharedFiles()).isZero();
  }

  private static byte[] forged(byte[] handle, int at, int change) {
    ByteBuffer bytes = ByteBuffer.wrap(handle.clone()).order(ByteOrder.LITTLE_ENDIAN);
    bytes.put(at, (byte) (bytes.get(at) ^ change));
    CRC32C sum = new CRC32C();
    sum.update(bytes.array(), 0, handle.length - Integer.BYTES);
    return bytes.putInt(handle.length - Integer.BYTES, (int) sum.getValue()).array();
  }

  /** Whatever made bytes with a sound sum: what they begin with, and the version, say who did. */
  @Test
  void bytesOfSomethingElse_areRefused_evenWithTheRightSum() {
    byte[] handle = exporter.sharing().ipcGetMemHandle(0, ours);
    assertThat(forged(handle, 0, 0)).isEqualTo(handle);
    for (int at = 0; at < KIND; at++) {
      byte[] other = forged(handle, at, 1);
      assertFails(
          CudaStatus.INVALID_VALUE,
          "bytes that no simulated driver of this version made",
          () -> importer.sharing().ipcOpenMemHandle(0, other));
    }
    assertFails(
        CudaStatus.INVALID_VALUE,
        "handle: of kind",
        () -> importer.sharing().ipcOpenMemHandle(0, forged(handle, KIND, 0x40)));
    assertThat(importer.liveSharedFiles()).isZero();
    assertThat(importer.sharing().ipcOpenMemHandle(0, handle)).isNotZero();
  }

  @Test
  void memoryThatHasNoHandle_isRefused() {
    long pooled = exporter.ordered().memAllocAsync(0, 8, out);
    long shared = allocate(pool(DEVICE), 8);
    long pinned = exporter.memory().memHostAlloc(0, 8, 0).address();
    long managed = exporter.memory().memAllocManaged(0, 8, 1).address();
    CudaStatus status = CudaStatus.INVALID_VALUE;
    for (long address : new long[] {pooled, shared, pinned, managed}) {
      assertFails(
          status,
          "memory of cuMemAlloc of this process",
          () -> exporter.sharing().ipcGetMemHandle(0, address));
    }
    assertFails(status, "live memory", () -> exporter.sharing().ipcGetMemHandle(0, 77));
    long theirs =
        importer.sharing().ipcOpenMemHandle(0, exporter.sharing().ipcGetMemHandle(0, ours));
    assertFails(status, "of this process", () -> importer.sharing().ipcGetMemHandle(0, theirs));
    assertFails(status, "allocated here", () -> importer.memory().memFree(0, theirs));
    assertFails(status, "stream order", () -> importer.ordered().memFreeAsync(0, theirs, in));
    long plain = importer.memory().memAlloc(0, 8);
    assertFails(status, "an opened handle", () -> importer.sharing().ipcCloseMemHandle(0, plain));
    assertFails(status, "the start of", () -> importer.sharing().ipcCloseMemHandle(0, theirs + 1));
  }

  @Test
  void importsDuringACapture_leaveItAlone() {
    byte[] handle = exporter.sharing().ipcGetMemHandle(0, ours);
    int descriptor = exporter.sharing().memPoolExportToShareableHandle(pool(DEVICE));
    importer.captures().streamBeginCapture(0, in, GLOBAL);
    importer
        .pools()
        .memPoolDestroy(importer.sharing().memPoolImportFromShareableHandle(descriptor));
    importer.sharing().ipcCloseMemHandle(0, importer.sharing().ipcOpenMemHandle(0, handle));
    importer.graphs().graphDestroy(importer.captures().streamEndCapture(0, in));
    DESCRIPTORS.close(descriptor);
  }

  @Test
  void wrongHandles_areRefused() {
    byte[] handle = exporter.sharing().ipcGetMemHandle(0, ours);
    CudaStatus status = CudaStatus.INVALID_VALUE;
    assertFails(
        CudaStatus.INVALID_CONTEXT,
        "made by this process",
        () -> exporter.sharing().ipcOpenMemHandle(0, handle));
    for (int length : new int[] {0, 65}) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> importer.sharing().ipcOpenMemHandle(0, Arrays.copyOf(handle, length)))
          .withMessageContaining("%d bytes", length);
    }
    for (int i = 0; i < handle.length; i++) {
      byte[] wrong = handle.clone();
      wrong[i] ^= 0x10;
      assertFails(status, "handle: ", () -> importer.sharing().ipcOpenMemHandle(0, wrong));
    }
    long event = exporter.events().eventCreate(0, INTERPROCESS);
    byte[] other = exporter.sharing().ipcGetEventHandle(0, event);
    assertFails(status, "of kind 3", () -> importer.sharing().ipcOpenMemHandle(0, other));
  }

  /** The driver knows its own without a look at the file. */
  @Test
  void handleOfItsOwnThatWasFreed_isStillRefusedAsItsOwn() {
    byte[] handle = exporter.sharing().ipcGetMemHandle(0, ours);
    exporter.memory().memFree(0, ours);
    assertFails(
        CudaStatus.INVALID_CONTEXT,
        "made by this process",
        () -> exporter.sharing().ipcOpenMemHandle(0, handle));
  }

  @Test
  void closedExporter_isRefused() {
    byte[] handle = exporter.sharing().ipcGetMemHandle(0, ours);
    exporter.close();
    assertFails(
        CudaStatus.INVALID_VALUE, "freed", () -> importer.sharing().ipcOpenMemHandle(0, handle));
  }

  @Test
  void memoryOfAnotherDevice_opensWhereItCanBeReached() {
    long second = exporter.memory().memAlloc(1, 64);
    byte[] handle = exporter.sharing().ipcGetMemHandle(1, second);
    long theirs = importer.sharing().ipcOpenMemHandle(0, handle);
    assertThat(importer.memory().pointerGetAttribute(0, 9, theirs)).isEqualTo(1);
    SimulatedOptions two = SimulatedOptions.DEFAULTS.withDevices(2).withPeers("none");
    try (SimulatedDriver apart = SimulatedDriver.open(two);
        SimulatedDriver single = open("devices=1")) {
      assertFails(
          CudaStatus.PEER_ACCESS_UNSUPPORTED,
          "from device 0 to device 1",
          () -> apart.sharing().ipcOpenMemHandle(0, handle));
      assertThat(apart.sharing().ipcOpenMemHandle(1, handle)).isNotZero();
      assertFails(
          CudaStatus.INVALID_DEVICE,
          "shared by device 1",
          () -> single.sharing().ipcOpenMemHandle(0, handle));
      assertThat(single.liveSharedFiles()).isZero();
    }
  }

  @Test
  void largeUntouchedMemory_costsNothing() {
    try (SimulatedDriver large = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
        SimulatedDriver alike = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
      long address = large.memory().memAlloc(0, 100L << 30);
      large.transfers().memsetD8Async(0, address + (90L << 30), (byte) 1, 1, 0);
      large.streams().streamSynchronize(0, 0);
      byte[] handle = large.sharing().ipcGetMemHandle(0, address);
      long theirs = alike.sharing().ipcOpenMemHandle(0, handle);
      assertThat(read(alike, theirs + (90L << 30), 2)).containsExactly(1, 0xA5);
      assertFails(
          CudaStatus.INVALID_VALUE,
          "107374182400 bytes, where a device has " + 64 * MIB,
          () -> importer.sharing().ipcOpenMemHandle(0, handle));
    }
    assertThat(exporter.pools().memPoolCreate(new PoolProperties(1, 1, DEVICE, 0, 1L << 40)))
        .isNotZero();
  }
}

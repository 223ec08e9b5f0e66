package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.BufferDescriptor;
import io.cuvette.DeviceBuffer;
import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import io.cuvette.PageHandles;
import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.UUID;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A peer that makes up what pages are imported by: whatever it claims and sends, the importer has
 * one error, nothing is mapped or open after it, and the channel goes on.
 */
class HostilePagesTest extends TwoProcesses {
  private static final DescriptorCalls CALLS = DescriptorCalls.find().orElseThrow();
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final int FRAME_MAGIC = 0x43564950;
  private static final int MAGIC = 0x43565047;
  private static final byte PAGES = 5;
  private static final long PAGE = 2 * MIB;

  @TempDir Path folder;
  private SimulatedDriver hostile;
  private IpcListener listener;
  private IpcChannel channel;
  private int socket;

  @BeforeEach
  void connect() {
    hostile = SimulatedDriver.open(SimulatedOptions.parse("devices=1"));
    listener = IpcListener.open(folder.resolve("socket"));
    socket = CALLS.connect(listener.path().toString(), PATIENCE);
    channel = listener.accept(PATIENCE);
  }

  @AfterEach
  void disconnect() {
    channel.close();
    listener.close();
    CALLS.close(socket);
    hostile.close();
  }

  /** A descriptor of real memory; the memory lives by it alone. */
  private int memory(long bytes) {
    long handle =
        hostile
            .virtual()
            .memCreate(bytes, AllocationProperties.ofDevice(0, MemHandleType.FILE_DESCRIPTOR));
    int descriptor = hostile.virtual().memExportToShareableHandle(handle);
    hostile.virtual().memRelease(handle);
    return descriptor;
  }

  private static byte[] descriptor(BufferDescriptor.Kind kind, long offset, long bytes) {
    return new BufferDescriptor(
            kind, offset, bytes, UUID.randomUUID(), new UUID(1, 1), new byte[64])
        .toBytes();
  }

  private static byte[] pages(long offset, long bytes, long... sizes) {
    return content(descriptor(BufferDescriptor.Kind.PAGES, offset, bytes), sizes);
  }

  private static byte[] content(byte[] descriptor, long... sizes) {
    ByteBuffer value = ByteBuffer.allocate(6 + descriptor.length + 8 * sizes.length + 4);
    value.putInt(MAGIC).putShort((short) 1).put(descriptor);
    for (long size : sizes) {
      value.putLong(size);
    }
    CRC32C crc = new CRC32C();
    crc.update(value.array(), 0, value.position());
    return value.putInt((int) crc.getValue()).array();
  }

  /** Sends a message, and closes its descriptors. */
  private void send(byte[] content, int... descriptors) {
    int following = 17 * descriptors.length + content.length;
    ByteBuffer frame = ByteBuffer.allocate(12 + following);
    frame.putInt(FRAME_MAGIC).put((byte) 1).put(PAGES);
    frame.putShort((short) descriptors.length).putInt(following);
    frame.position(12 + 17 * descriptors.length).put(content);
    CALLS.send(socket, frame.array(), descriptors, PATIENCE);
    for (int each : descriptors) {
      CALLS.close(each);
    }
  }

  private void assertNotReceived(String why, byte[] content, int... descriptors) {
    long before = OpenFiles.count() - descriptors.length;
    send(content, descriptors);
    assertThatThrownBy(() -> channel.receivePageHandles(PATIENCE).close())
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(why);
    assertThat(channel.isClosed()).isFalse();
    assertThat(OpenFiles.count()).isLessThanOrEqualTo(before);
  }

  private void assertNotImported(
      Class<? extends RuntimeException> type, String why, byte[] content, int... descriptors) {
    send(content, descriptors);
    try (PageHandles handles = channel.receivePageHandles(PATIENCE)) {
      assertThatThrownBy(() -> there().importBuffer(handles, there().nullStream()))
          .isInstanceOf(type)
          .hasMessageContaining(why);
    }
    assertThat(importerDriver().report().toString()).doesNotContain("reserved ranges");
    assertThat(there().memoryInfo().freeBytes()).isEqualTo(256 * MIB);
  }

  @AfterEach
  void rightPagesWorkOnTheSameChannel() {
    send(pages(PAGE - 1, 2, PAGE, PAGE), memory(PAGE), memory(PAGE));
    try (PageHandles handles = channel.receivePageHandles(PATIENCE);
        DeviceBuffer buffer = there().importBuffer(handles, there().nullStream())) {
      buffer.fill((byte) 7);
      assertThat(bytes(buffer)).containsExactly(7, 7);
    }
  }

  @Test
  void contentThatIsCutOrAltered_isRefusedWhenItComes() {
    byte[] right = pages(0, 10, PAGE);
    assertNotReceived("bytes", Arrays.copyOf(right, right.length - 1), memory(PAGE));
    assertNotReceived("bytes", Arrays.copyOf(right, right.length + 8), memory(PAGE));
    assertNotReceived("bytes", new byte[0], memory(PAGE));
    assertNotReceived("bytes", right, memory(PAGE), memory(PAGE));
    for (int at = 0; at < right.length; at += 7) {
      byte[] altered = right.clone();
      altered[at] ^= 4;
      assertNotReceived("PageHandles", altered, memory(PAGE));
    }
  }

  @Test
  void wrongSizesAndPlaces_areRefusedWhenTheyCome() {
    assertNotReceived(
        "PageHandles, size of page 0: 0 (expected: 1 to 9223372036854775807)",
        pages(0, 10, 0),
        memory(PAGE));
    assertNotReceived("size of page 0: -2", pages(0, 10, -2), memory(PAGE));
    assertNotReceived(
        "PageHandles, size of page 1: %d (expected: 1 to 0)".formatted(PAGE),
        pages(0, 10, Long.MAX_VALUE, PAGE),
        memory(PAGE),
        memory(PAGE));
    assertNotReceived("from the first to the last", pages(PAGE, 1, PAGE), memory(PAGE));
    assertNotReceived("from the first to the last", pages(0, PAGE + 1, PAGE), memory(PAGE));
    assertNotReceived(
        "from the first to the last", pages(PAGE, PAGE, PAGE, PAGE), memory(PAGE), memory(PAGE));
    assertNotReceived(
        "from the first to the last", pages(0, PAGE, PAGE, PAGE), memory(PAGE), memory(PAGE));
    assertNotReceived(
        "PageHandles, kind: PLAIN (expected: PAGES)",
        content(descriptor(BufferDescriptor.Kind.PLAIN, 0, 10), PAGE),
        memory(PAGE));
  }

  @Test
  void otherMemoryThanClaimed_isRefusedWhenItIsImported() {
    Class<CudaException> refused = CudaException.class;
    Class<IllegalArgumentException> wrong = IllegalArgumentException.class;
    assertNotImported(refused, "another size", pages(0, 10, 2 * PAGE), memory(PAGE));
    assertNotImported(refused, "another size", pages(0, 10, PAGE), memory(2 * PAGE));
    assertNotImported(
        wrong,
        "pages: page 0 has %d bytes (expected: a multiple of %d)".formatted(PAGE + 1, PAGE),
        pages(0, 10, PAGE + 1),
        memory(PAGE));
    assertNotImported(
        wrong,
        "pages: page 1 has %d bytes (expected: a multiple of %d)".formatted(PAGE - 1, PAGE),
        pages(0, PAGE + 10, PAGE, PAGE - 1),
        memory(PAGE),
        memory(PAGE));
    assertNotImported(
        wrong,
        "pages: %d bytes (expected: what fits a device, which has %d)"
            .formatted(1L << 50, 256L << 20),
        pages(0, 10, 1L << 50),
        memory(PAGE));
    assertNotImported(
        refused, "INVALID_VALUE", pages(0, 10, PAGE), CALLS.memoryFile("no memory", PAGE));
    assertNotImported(refused, "INVALID_VALUE", pages(0, 10, PAGE), CALLS.duplicate(socket));
    assertNotImported( // the first page is right, and goes back
        refused,
        "INVALID_VALUE",
        pages(0, PAGE + 1, PAGE, PAGE),
        memory(PAGE),
        CALLS.memoryFile("no memory", PAGE));
    long pool = hostile.pools().memPoolCreate(new PoolProperties(1, 1, 1, 0, 0));
    int ofPool = hostile.sharing().memPoolExportToShareableHandle(pool);
    assertNotImported(refused, "INVALID_VALUE", pages(0, 10, PAGE), ofPool);
    hostile.pools().memPoolDestroy(pool);
  }

  @Test
  void onePageTwice_isTwoAddressesOfTheSameMemory() {
    int page = memory(PAGE);
    send(pages(0, 2 * PAGE, PAGE, PAGE), page, CALLS.duplicate(page));
    try (PageHandles handles = channel.receivePageHandles(PATIENCE);
        DeviceBuffer buffer = there().importBuffer(handles, there().nullStream())) {
      buffer.slice(0, PAGE).fill((byte) 3);
      assertThat(bytes(buffer.slice(PAGE))).containsOnly(3);
    }
  }
}

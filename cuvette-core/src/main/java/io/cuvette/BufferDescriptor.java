package io.cuvette;

import io.cuvette.driver.IpcCalls;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.base.WireFormat;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Objects;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * What another process imports a buffer by; {@link Buffer#descriptor()} makes it. It is a value
 * that can be sent in any way, and it frees nothing: the exporter keeps its buffer open until the
 * importers have closed theirs. It is no secret and no permission either, see {@link IpcChannel}.
 * Immutable.
 */
public final class BufferDescriptor {
  private static final int MAGIC = 0x43564244; // CVBD

  /** Header, kind, 1 unused byte, offset, size, two UUIDs, the driver's handle, checksum. */
  private static final int BYTES =
      WireFormat.HEADER_BYTES
          + 2
          + 2 * Long.BYTES
          + 4 * Long.BYTES
          + IpcCalls.HANDLE_BYTES
          + Integer.BYTES;

  private static final String NAME = "BufferDescriptor";

  /** What memory a descriptor is of, and so what can import it. */
  public enum Kind {
    /**
     * An allocation of an IPC-enabled device pool: {@link DeviceMemoryResource#importBuffer}
     * (cuMemPoolExportPointer).
     */
    DEVICE_POOL(1),

    /**
     * An allocation of an IPC-enabled pool of host memory: {@link
     * PinnedMemoryResource#importBuffer} (cuMemPoolExportPointer).
     */
    HOST_POOL(2),

    /**
     * Device memory without a pool of the driver: {@link CudaDevice#importBuffer}
     * (cuIpcGetMemHandle).
     */
    PLAIN(3),

    /**
     * A part of pages of an {@link ElasticMemoryPool}, which travels in {@link PageHandles} with
     * the pages' own descriptors and is of no use without (cuMemExportToShareableHandle).
     */
    PAGES(4);

    private final byte code;

    Kind(int code) {
      this.code = (byte) code;
    }

    private static Kind of(byte code) {
      for (Kind kind : values()) {
        if (kind.code == code) {
          return kind;
        }
      }
      throw new IllegalArgumentException(
          "%s, kind: %d (expected: 1 to %d)".formatted(NAME, code, values().length));
    }
  }

  private final Kind kind;
  private final long offset;
  private final long byteSize;
  private final UUID process;
  private final UUID deviceUuid;
  private final byte[] handle;

  /**
   * A descriptor of its parts; {@link Buffer#descriptor()} makes one of a buffer.
   *
   * @param kind what memory it is of
   * @param offset where the buffer begins in the allocation that is mapped, in bytes, >= 0
   * @param byteSize the size of the buffer in bytes, >= 1
   * @param process the process that made the memory
   * @param deviceUuid the device that the buffer was allocated on
   * @param handle the driver's bytes, which stand for the whole allocation; always as many
   * @throws IllegalArgumentException if a number is out of range
   */
  public BufferDescriptor(
      Kind kind, long offset, long byteSize, UUID process, UUID deviceUuid, byte[] handle) {
    this.kind = Objects.requireNonNull(kind, "kind");
    this.offset = Checks.notNegative("offset", offset);
    this.byteSize = Checks.inRange("byteSize", byteSize, 1, Long.MAX_VALUE - offset);
    this.process = Objects.requireNonNull(process, "process");
    this.deviceUuid = Objects.requireNonNull(deviceUuid, "deviceUuid");
    this.handle = WireFormat.handle(NAME, handle);
  }

  /** Where a buffer is in pages that travel with it. */
  static BufferDescriptor ofPages(long offset, long byteSize, UUID process, UUID deviceUuid) {
    byte[] none = new byte[IpcCalls.HANDLE_BYTES];
    return new BufferDescriptor(Kind.PAGES, offset, byteSize, process, deviceUuid, none);
  }

  /**
   * {@return the descriptor that {@link #toBytes()} encoded}
   *
   * @param bytes the bytes of a descriptor
   * @throws IllegalArgumentException naming what is wrong: the length, magic number, version, kind,
   *     checksum, or a negative or overflowing offset and size
   */
  public static BufferDescriptor fromBytes(byte[] bytes) {
    Objects.requireNonNull(bytes, "bytes");
    ByteBuffer content = WireFormat.open(NAME, bytes, MAGIC, BYTES);
    Kind kind = Kind.of(content.get());
    int unused = content.get();
    WireFormat.require(unused == 0, NAME, "unused byte", unused, 0);
    long offset = content.getLong();
    long byteSize = content.getLong();
    UUID process = WireFormat.getUuid(content);
    UUID deviceUuid = WireFormat.getUuid(content);
    byte[] handle = new byte[IpcCalls.HANDLE_BYTES];
    content.get(handle);
    return new BufferDescriptor(kind, offset, byteSize, process, deviceUuid, handle);
  }

  /** {@return the descriptor as bytes, of a fixed length and the same on every machine} */
  public byte[] toBytes() {
    ByteBuffer value = WireFormat.begin(MAGIC, BYTES);
    value.put(kind.code).put((byte) 0).putLong(offset).putLong(byteSize);
    WireFormat.putUuid(value, process);
    WireFormat.putUuid(value, deviceUuid);
    return WireFormat.end(value.put(handle));
  }

  /** {@return the kind of its memory} */
  public Kind kind() {
    return kind;
  }

  /** {@return the offset of the buffer in the allocation that is mapped, in bytes} */
  public long offset() {
    return offset;
  }

  /** {@return the size of the buffer, in bytes; at least 1} */
  public long byteSize() {
    return byteSize;
  }

  /**
   * {@return the UUID of the device that the buffer was allocated on; for host memory that of its
   * stream}
   */
  public UUID deviceUuid() {
    return deviceUuid;
  }

  /**
   * The process that made the memory.
   *
   * @return its identity, made anew in each process
   */
  public UUID process() {
    return process;
  }

  /**
   * The driver's bytes; the same for all buffers of one allocation.
   *
   * @return a copy
   */
  public byte[] handle() {
    return handle.clone();
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof BufferDescriptor that
        && kind == that.kind
        && offset == that.offset
        && byteSize == that.byteSize
        && process.equals(that.process)
        && deviceUuid.equals(that.deviceUuid)
        && Arrays.equals(handle, that.handle);
  }

  @Override
  public int hashCode() {
    return Objects.hash(kind, offset, byteSize, process, Arrays.hashCode(handle));
  }

  @Override
  public String toString() {
    return "%s[%s, offset=%d, byteSize=%d, handle=%s…]"
        .formatted(NAME, kind, offset, byteSize, HexFormat.of().formatHex(handle, 0, 8));
  }
}

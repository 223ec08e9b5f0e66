package io.cuvette;

import io.cuvette.driver.IpcCalls;
import io.cuvette.internal.Checks;
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
    PLAIN(3);

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

  BufferDescriptor(
      Kind kind, long offset, long byteSize, UUID process, UUID deviceUuid, byte[] handle) {
    Checks.notNegative("offset", offset);
    Checks.inRange("byteSize", byteSize, 1, Long.MAX_VALUE - offset);
    WireFormat.require(
        handle.length == IpcCalls.HANDLE_BYTES,
        NAME,
        "handle bytes",
        handle.length,
        IpcCalls.HANDLE_BYTES);
    this.kind = kind;
    this.offset = offset;
    this.byteSize = byteSize;
    this.process = process;
    this.deviceUuid = deviceUuid;
    this.handle = handle.clone();
  }

  /**
   * A descriptor from what {@link #toBytes()} gave.
   *
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

  /** The descriptor as bytes, always as many; they mean the same on every machine. */
  public byte[] toBytes() {
    ByteBuffer value = WireFormat.begin(MAGIC, BYTES);
    value.put(kind.code).put((byte) 0).putLong(offset).putLong(byteSize);
    WireFormat.putUuid(value, process);
    WireFormat.putUuid(value, deviceUuid);
    return WireFormat.end(value.put(handle));
  }

  /** What memory it is of. */
  public Kind kind() {
    return kind;
  }

  /** Where the buffer begins in the allocation that is mapped, in bytes. */
  public long offset() {
    return offset;
  }

  /** The size of the buffer, in bytes; at least 1. */
  public long byteSize() {
    return byteSize;
  }

  /** The device the buffer was allocated on; for host memory the one of its stream. */
  public UUID deviceUuid() {
    return deviceUuid;
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
    return "BufferDescriptor[%s, offset=%d, byteSize=%d, handle=%s…]"
        .formatted(kind, offset, byteSize, HexFormat.of().formatHex(handle, 0, 8));
  }

  /** The process that made the memory. */
  UUID process() {
    return process;
  }

  /** The driver's bytes; the same for all buffers of one allocation. */
  byte[] handle() {
    return handle.clone();
  }
}

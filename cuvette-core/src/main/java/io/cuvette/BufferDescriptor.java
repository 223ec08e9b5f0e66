package io.cuvette;

import io.cuvette.driver.IpcCalls;
import io.cuvette.internal.base.WireFormat;
import io.cuvette.internal.block.Exported;
import java.nio.ByteBuffer;
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

  private final Exported core;

  BufferDescriptor(Exported core) {
    this.core = core;
  }

  /** The descriptor as the engine knows it. */
  Exported core() {
    return core;
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
    return new BufferDescriptor(new Exported(kind, offset, byteSize, process, deviceUuid, handle));
  }

  /** The descriptor as bytes, always as many; they mean the same on every machine. */
  public byte[] toBytes() {
    ByteBuffer value = WireFormat.begin(MAGIC, BYTES);
    value.put(core.kind().code).put((byte) 0).putLong(core.offset()).putLong(core.byteSize());
    WireFormat.putUuid(value, core.process());
    WireFormat.putUuid(value, core.deviceUuid());
    return WireFormat.end(value.put(core.handle()));
  }

  /** What memory it is of. */
  public Kind kind() {
    return core.kind();
  }

  /** Where the buffer begins in the allocation that is mapped, in bytes. */
  public long offset() {
    return core.offset();
  }

  /** The size of the buffer, in bytes; at least 1. */
  public long byteSize() {
    return core.byteSize();
  }

  /** The device the buffer was allocated on; for host memory the one of its stream. */
  public UUID deviceUuid() {
    return core.deviceUuid();
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof BufferDescriptor that && core.equals(that.core);
  }

  @Override
  public int hashCode() {
    return core.hashCode();
  }

  @Override
  public String toString() {
    return core.toString();
  }
}

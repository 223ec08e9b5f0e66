package io.cuvette.internal.base;

import io.cuvette.driver.IpcCalls;
import java.nio.ByteBuffer;
import java.util.Objects;
import java.util.UUID;
import java.util.zip.CRC32C;

/**
 * Values of a fixed number of bytes that go from process to process: a magic number, a version, the
 * content, and a checksum of all before it, in network byte order. Stateless.
 */
public final class WireFormat {
  private static final short VERSION = 1;
  private static final int CHECKSUM_BYTES = Integer.BYTES;

  /** What stands before the content. */
  public static final int HEADER_BYTES = Integer.BYTES + Short.BYTES;

  private WireFormat() {}

  /** A buffer for a value, with its header written. */
  public static ByteBuffer begin(int magic, int totalBytes) {
    return ByteBuffer.allocate(totalBytes).putInt(magic).putShort(VERSION);
  }

  /** The bytes of a value whose content is complete. */
  @SuppressWarnings("ByteBufferBackingArray") // begin() allocated it
  public static byte[] end(ByteBuffer value) {
    if (value.remaining() != CHECKSUM_BYTES) {
      throw new AssertionError(value.remaining() + " bytes are left for the checksum");
    }
    byte[] bytes = value.array();
    value.putInt(checksum(bytes));
    return bytes;
  }

  /**
   * The content of a value.
   *
   * @param what the value, for messages
   * @throws IllegalArgumentException if the bytes are not a value of this kind and version
   */
  public static ByteBuffer open(String what, byte[] bytes, int magic, int totalBytes) {
    require(bytes.length == totalBytes, what, "bytes", bytes.length, totalBytes);
    ByteBuffer value = ByteBuffer.wrap(bytes);
    require(value.getInt(0) == magic, what, "magic", value.getInt(0), magic);
    short version = value.getShort(Integer.BYTES);
    require(version == VERSION, what, "version", version, VERSION);
    int stored = value.getInt(totalBytes - CHECKSUM_BYTES);
    int computed = checksum(bytes);
    require(stored == computed, what, "checksum", stored, computed);
    return value.slice(HEADER_BYTES, totalBytes - HEADER_BYTES - CHECKSUM_BYTES);
  }

  public static void putUuid(ByteBuffer into, UUID uuid) {
    into.putLong(uuid.getMostSignificantBits()).putLong(uuid.getLeastSignificantBits());
  }

  public static UUID getUuid(ByteBuffer from) {
    return new UUID(from.getLong(), from.getLong());
  }

  public static void require(boolean holds, String what, String field, long found, long expected) {
    if (!holds) {
      throw new IllegalArgumentException(
          "%s, %s: %d (expected: %d)".formatted(what, field, found, expected));
    }
  }

  /** Copies a handle of the driver, which has always as many bytes. */
  public static byte[] handle(String what, byte[] handle) {
    Objects.requireNonNull(handle, "handle");
    require(
        handle.length == IpcCalls.HANDLE_BYTES,
        what,
        "handle bytes",
        handle.length,
        IpcCalls.HANDLE_BYTES);
    return handle.clone();
  }

  private static int checksum(byte[] bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes, 0, bytes.length - CHECKSUM_BYTES);
    return (int) crc.getValue();
  }
}

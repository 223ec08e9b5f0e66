package io.cuvette.testkit.ipc;

import io.cuvette.BufferDescriptor;
import io.cuvette.EventDescriptor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.SplittableRandom;
import java.util.zip.CRC32C;

/** Descriptors that someone has changed, with a checksum that is right again. Stateless. */
final class Tampered {
  private static final int KIND_AT = 6;
  private static final int OFFSET_AT = 8;
  private static final int SIZE_AT = 16;
  private static final int HANDLE_BYTES = 64;
  private static final int CHECKSUM_BYTES = 4;

  private Tampered() {}

  static BufferDescriptor withRange(BufferDescriptor descriptor, long offset, long bytes) {
    ByteBuffer content = ByteBuffer.wrap(descriptor.toBytes());
    content.putLong(OFFSET_AT, offset).putLong(SIZE_AT, bytes);
    return BufferDescriptor.fromBytes(signed(content.array()));
  }

  static BufferDescriptor withKind(BufferDescriptor descriptor, BufferDescriptor.Kind kind) {
    byte[] bytes = descriptor.toBytes();
    bytes[KIND_AT] = (byte) (kind.ordinal() + 1);
    BufferDescriptor changed = BufferDescriptor.fromBytes(signed(bytes));
    if (changed.kind() != kind) {
      throw new AssertionError(changed);
    }
    return changed;
  }

  /** With a handle of the driver that is all random. */
  static BufferDescriptor withHandle(BufferDescriptor descriptor, SplittableRandom random) {
    return BufferDescriptor.fromBytes(withRandomHandle(descriptor.toBytes(), random));
  }

  static EventDescriptor withHandle(EventDescriptor descriptor, SplittableRandom random) {
    return EventDescriptor.fromBytes(withRandomHandle(descriptor.toBytes(), random));
  }

  /** With one bit of the driver's handle changed. */
  static BufferDescriptor withBit(BufferDescriptor descriptor, int bit) {
    byte[] bytes = descriptor.toBytes();
    bytes[handleAt(bytes) + bit / Byte.SIZE] ^= (byte) (1 << bit % Byte.SIZE);
    return BufferDescriptor.fromBytes(signed(bytes));
  }

  /** The same, of a handle that a simulated driver takes for its own. */
  static BufferDescriptor withSimulatedBit(BufferDescriptor descriptor, int bit) {
    byte[] bytes = descriptor.toBytes();
    int at = handleAt(bytes);
    bytes[at + bit / Byte.SIZE] ^= (byte) (1 << bit % Byte.SIZE);
    CRC32C checksum = new CRC32C();
    checksum.update(bytes, at, HANDLE_BYTES - CHECKSUM_BYTES);
    ByteBuffer.wrap(bytes)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putInt(at + HANDLE_BYTES - CHECKSUM_BYTES, (int) checksum.getValue());
    return BufferDescriptor.fromBytes(signed(bytes));
  }

  static EventDescriptor withBit(EventDescriptor descriptor, int bit) {
    byte[] bytes = descriptor.toBytes();
    bytes[handleAt(bytes) + bit / Byte.SIZE] ^= (byte) (1 << bit % Byte.SIZE);
    return EventDescriptor.fromBytes(signed(bytes));
  }

  private static byte[] withRandomHandle(byte[] bytes, SplittableRandom random) {
    byte[] handle = new byte[HANDLE_BYTES];
    random.nextBytes(handle);
    System.arraycopy(handle, 0, bytes, handleAt(bytes), HANDLE_BYTES);
    return signed(bytes);
  }

  private static int handleAt(byte[] bytes) {
    return bytes.length - CHECKSUM_BYTES - HANDLE_BYTES;
  }

  private static byte[] signed(byte[] bytes) {
    CRC32C checksum = new CRC32C();
    checksum.update(bytes, 0, bytes.length - CHECKSUM_BYTES);
    ByteBuffer.wrap(bytes).putInt(bytes.length - CHECKSUM_BYTES, (int) checksum.getValue());
    return bytes;
  }
}

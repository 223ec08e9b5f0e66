package io.cuvette.sim.internal.share;

import io.cuvette.driver.IpcCalls;
import io.cuvette.sim.internal.base.SimRefusal;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.UUID;
import java.util.zip.CRC32C;

/**
 * What crosses to another process as {@value IpcCalls#HANDLE_BYTES} bytes. Immutable.
 *
 * @param kind what it stands for
 * @param file the identity of the file that has it
 * @param driver the driver that made it
 * @param process the process that has the file open
 * @param descriptor the descriptor of that process; of an allocation, its place in the pool's table
 * @param generation of an allocation, how often that place was used
 */
public record ShareHandle(
    Kind kind, UUID file, long driver, ProcessId process, int descriptor, long generation) {

  /** What a handle stands for. */
  public enum Kind {
    POINTER(1),
    MEMORY(2),
    EVENT(3);

    private final int code;

    Kind(int code) {
      this.code = code;
    }
  }

  private static final int MAGIC = 0x43_56_54_48;
  private static final int VERSION = 1;

  /** The bytes before their checksum. */
  private static final int CHECKED = IpcCalls.HANDLE_BYTES - Integer.BYTES;

  public byte[] toBytes() {
    ByteBuffer bytes =
        ByteBuffer.allocate(IpcCalls.HANDLE_BYTES)
            .order(ByteOrder.LITTLE_ENDIAN)
            .putInt(MAGIC)
            .putShort((short) VERSION)
            .putShort((short) kind.code)
            .putLong(file.getMostSignificantBits())
            .putLong(file.getLeastSignificantBits())
            .putLong(driver)
            .putInt(process.pid())
            .putInt(descriptor)
            .putLong(process.startTicks())
            .putLong(generation);
    return bytes.putInt(CHECKED, checksum(bytes.array())).array();
  }

  /** A caller's handle, which the caller may change, or an exception if it is no handle's size. */
  public static byte[] copy(byte[] bytes) {
    if (bytes.length != IpcCalls.HANDLE_BYTES) {
      throw new IllegalArgumentException(
          "handle: %d bytes (expected: %d)".formatted(bytes.length, IpcCalls.HANDLE_BYTES));
    }
    return bytes.clone();
  }

  /** Reads a handle of a kind, or INVALID_VALUE with what is wrong with the bytes. */
  public static ShareHandle of(byte[] bytes, Kind kind) {
    ByteBuffer from = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    if (from.getInt() != MAGIC
        || from.getShort() != VERSION
        || from.getInt(CHECKED) != checksum(bytes)) {
      throw SimRefusal.invalidValue("handle: bytes that no simulated driver of this version made");
    }
    int found = from.getShort();
    if (found != kind.code) {
      throw SimRefusal.invalidValue(
          "handle: of kind %d (expected: %d, %s)".formatted(found, kind.code, kind));
    }
    UUID file = new UUID(from.getLong(), from.getLong());
    long driver = from.getLong();
    int pid = from.getInt();
    int descriptor = from.getInt();
    ProcessId process = new ProcessId(pid, from.getLong());
    return new ShareHandle(kind, file, driver, process, descriptor, from.getLong());
  }

  private static int checksum(byte[] bytes) {
    CRC32C sum = new CRC32C();
    sum.update(bytes, 0, CHECKED);
    return (int) sum.getValue();
  }
}

package io.cuvette.sim.internal.share;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.UUID;

/**
 * What a file that several processes map says about itself. It is read once and checked: the others
 * can write it at any time. Immutable.
 *
 * <pre>
 *   0       8         12     16   32       40            56         60    64         72
 *   | magic | version | kind | id | driver | device UUID | location | id | data size |
 * </pre>
 *
 * @param id the identity of the file
 * @param place where what is in the file was made
 * @param dataBytes the bytes behind the head
 */
public record SharedHead(UUID id, SharedPlace place, long dataBytes) {
  private static final long MAGIC = 0x31_45_54_54_45_56_55_43L;
  private static final int VERSION = 2;

  /** That of a new file. */
  public static SharedHead of(SharedPlace place, long dataBytes) {
    return new SharedHead(UUID.randomUUID(), place, dataBytes);
  }

  /**
   * Reads the head of a file of a size.
   *
   * @param mostBytes what an allocation may have
   */
  public static SharedHead read(
      MemorySegment mapped, SharedFile.Kind kind, long fileBytes, long mostBytes) {
    long magic = mapped.get(ValueLayout.JAVA_LONG, 0);
    int version = mapped.get(ValueLayout.JAVA_INT, 8);
    int found = mapped.get(ValueLayout.JAVA_INT, 12);
    if (magic != MAGIC || version != VERSION || found != kind.code) {
      throw kind.refuse("a file of something else");
    }
    long dataBytes = mapped.get(ValueLayout.JAVA_LONG, 64);
    if (dataBytes != fileBytes - kind.headBytes) {
      throw kind.refuse(
          "a file of %d bytes that claims %d of data".formatted(fileBytes, dataBytes));
    }
    boolean isMemory = kind == SharedFile.Kind.MEMORY || kind == SharedFile.Kind.ALLOCATION;
    if (isMemory && (dataBytes == 0 || dataBytes > mostBytes)) {
      throw kind.refuse("%d bytes, where a device has %d".formatted(dataBytes, mostBytes));
    }
    SharedPlace place =
        new SharedPlace(
            uuid(mapped, 40),
            mapped.get(ValueLayout.JAVA_INT, 56),
            mapped.get(ValueLayout.JAVA_INT, 60));
    return new SharedHead(uuid(mapped, 16), place, dataBytes);
  }

  public void write(MemorySegment mapped, SharedFile.Kind kind, long driver) {
    mapped.set(ValueLayout.JAVA_INT, 8, VERSION);
    mapped.set(ValueLayout.JAVA_INT, 12, kind.code);
    set(mapped, 16, id);
    mapped.set(ValueLayout.JAVA_LONG, 32, driver);
    set(mapped, 40, place.uuid());
    mapped.set(ValueLayout.JAVA_INT, 56, place.locationType());
    mapped.set(ValueLayout.JAVA_INT, 60, place.locationId());
    mapped.set(ValueLayout.JAVA_LONG, 64, dataBytes);
    mapped.set(ValueLayout.JAVA_LONG, 0, MAGIC);
  }

  private static void set(MemorySegment mapped, long offset, UUID value) {
    mapped.set(ValueLayout.JAVA_LONG, offset, value.getMostSignificantBits());
    mapped.set(ValueLayout.JAVA_LONG, offset + 8, value.getLeastSignificantBits());
  }

  private static UUID uuid(MemorySegment mapped, long offset) {
    return new UUID(
        mapped.get(ValueLayout.JAVA_LONG, offset), mapped.get(ValueLayout.JAVA_LONG, offset + 8));
  }
}

package io.cuvette.internal.channel;

import io.cuvette.internal.base.WireFormat;
import java.io.IOException;
import java.io.StreamCorruptedException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * One message on an {@code IpcChannel}: a header of 12 bytes (magic number, version, kind, number
 * of descriptors, bytes that follow), one entry of 17 bytes for each descriptor (whether it has a
 * UUID, and which), and the content. Network byte order. Immutable.
 *
 * @param uuids of the descriptors that come with it; null for one without
 */
@SuppressWarnings("ArrayRecordComponent") // nobody compares frames
public record IpcFrame(Kind kind, List<@Nullable UUID> uuids, byte[] content) {
  public static final int HEADER_BYTES = 12;
  public static final int MOST_CONTENT_BYTES = 1 << 20;
  public static final int MOST_DESCRIPTORS = 16;

  /** So many pages can be passed at once: 128 GiB of the largest. */
  public static final int MOST_PAGES = 4096;

  private static final int MAGIC = 0x43564950; // CVIP
  private static final byte VERSION = 1;
  private static final int ENTRY_BYTES = 17;

  /** What a message is. */
  public enum Kind {
    MESSAGE(1, "a message", 0, MOST_DESCRIPTORS),
    ALLOCATION_HANDLE(2, "an AllocationHandle", 1, 1),
    BUFFER_DESCRIPTOR(3, "a BufferDescriptor", 0, 0),
    EVENT_DESCRIPTOR(4, "an EventDescriptor", 0, 0),
    PAGE_HANDLES(5, "PageHandles", 1, MOST_PAGES);

    private final byte code;
    public final String text;
    private final int leastDescriptors;
    private final int mostDescriptors;

    Kind(int code, String text, int leastDescriptors, int mostDescriptors) {
      this.code = (byte) code;
      this.text = text;
      this.leastDescriptors = leastDescriptors;
      this.mostDescriptors = mostDescriptors;
    }

    private static Kind of(byte code) throws IOException {
      for (Kind kind : values()) {
        if (kind.code == code) {
          return kind;
        }
      }
      throw new StreamCorruptedException(
          "kind: %d (expected: 1 to %d)".formatted(code, values().length));
    }
  }

  /** What a header announces. */
  public record Header(Kind kind, int descriptors, int bytes) {}

  public byte[] toBytes() {
    int following = uuids.size() * ENTRY_BYTES + content.length;
    ByteBuffer bytes = ByteBuffer.allocate(HEADER_BYTES + following);
    bytes.putInt(MAGIC).put(VERSION).put(kind.code);
    bytes.putShort((short) uuids.size()).putInt(following);
    for (UUID uuid : uuids) {
      bytes.put((byte) (uuid == null ? 0 : 1));
      WireFormat.putUuid(bytes, uuid == null ? new UUID(0, 0) : uuid);
    }
    return bytes.put(content).array();
  }

  /**
   * The bytes of a message that come before a group of {@link #MOST_DESCRIPTORS} descriptors, which
   * go with what follows: the system passes few at once.
   */
  public static int beginOf(int group) {
    return group == 0 ? 0 : HEADER_BYTES + group * MOST_DESCRIPTORS * ENTRY_BYTES;
  }

  public static Header header(byte[] bytes) throws IOException {
    ByteBuffer header = ByteBuffer.wrap(bytes);
    int magic = header.getInt();
    require(magic == MAGIC, "magic", magic, MAGIC, MAGIC);
    byte version = header.get();
    require(version == VERSION, "version", version, VERSION, VERSION);
    Kind kind = Kind.of(header.get());
    short descriptors = header.getShort();
    inRange("descriptors", descriptors, kind.leastDescriptors, kind.mostDescriptors);
    int following = header.getInt();
    int entries = descriptors * ENTRY_BYTES;
    inRange("bytes", following, entries, (long) entries + MOST_CONTENT_BYTES);
    return new Header(kind, descriptors, following);
  }

  public static IpcFrame of(Header header, byte[] following) throws IOException {
    ByteBuffer bytes = ByteBuffer.wrap(following);
    @Nullable UUID[] uuids = new @Nullable UUID[header.descriptors];
    for (int i = 0; i < uuids.length; i++) {
      byte known = bytes.get();
      inRange("UUID flag", known, 0, 1);
      UUID uuid = WireFormat.getUuid(bytes);
      uuids[i] = known == 1 ? uuid : null;
    }
    byte[] content = new byte[bytes.remaining()];
    bytes.get(content);
    return new IpcFrame(header.kind, Arrays.asList(uuids), content);
  }

  private static void inRange(String field, long found, long least, long most) throws IOException {
    require(found >= least && found <= most, field, found, least, most);
  }

  private static void require(boolean holds, String field, long found, long least, long most)
      throws IOException {
    if (!holds) {
      throw new StreamCorruptedException(
          "%s: %d (expected: %s)"
              .formatted(field, found, least == most ? least : least + " to " + most));
    }
  }
}

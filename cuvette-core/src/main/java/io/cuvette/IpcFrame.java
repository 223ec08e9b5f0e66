package io.cuvette;

import java.io.IOException;
import java.io.StreamCorruptedException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * One message on an {@link IpcChannel}: a header of 12 bytes (magic number, version, kind, number
 * of descriptors, bytes that follow), one entry of 17 bytes for each descriptor (whether it has a
 * UUID, and which), and the content. Network byte order. Immutable.
 *
 * @param uuids of the descriptors that come with it; null for one without
 */
record IpcFrame(Kind kind, List<@Nullable UUID> uuids, byte[] content) {
  static final int HEADER_BYTES = 12;
  static final int MOST_CONTENT_BYTES = 1 << 20;
  static final int MOST_DESCRIPTORS = 16;

  private static final int MAGIC = 0x43564950; // CVIP
  private static final byte VERSION = 1;
  private static final int ENTRY_BYTES = 17;

  /** What a message is; the order is part of the protocol. */
  enum Kind {
    MESSAGE,
    ALLOCATION_HANDLE,
    BUFFER_DESCRIPTOR,
    EVENT_DESCRIPTOR;

    String text() {
      return switch (this) {
        case MESSAGE -> "a message";
        case ALLOCATION_HANDLE -> "an AllocationHandle";
        case BUFFER_DESCRIPTOR -> "a BufferDescriptor";
        case EVENT_DESCRIPTOR -> "an EventDescriptor";
      };
    }
  }

  /** What a header announces. */
  record Header(Kind kind, int descriptors, int bytes) {}

  byte[] toBytes() {
    int following = uuids.size() * ENTRY_BYTES + content.length;
    ByteBuffer bytes = ByteBuffer.allocate(HEADER_BYTES + following);
    bytes.putInt(MAGIC).put(VERSION).put((byte) kind.ordinal());
    bytes.putShort((short) uuids.size()).putInt(following);
    for (UUID uuid : uuids) {
      bytes.put((byte) (uuid == null ? 0 : 1));
      WireFormat.putUuid(bytes, uuid == null ? new UUID(0, 0) : uuid);
    }
    return bytes.put(content).array();
  }

  static Header header(byte[] bytes) throws IOException {
    ByteBuffer header = ByteBuffer.wrap(bytes);
    int magic = header.getInt();
    require(magic == MAGIC, "magic", magic, MAGIC, MAGIC);
    byte version = header.get();
    require(version == VERSION, "version", version, VERSION, VERSION);
    byte kind = header.get();
    require(kind >= 0 && kind < Kind.values().length, "kind", kind, 0, Kind.values().length - 1L);
    short descriptors = header.getShort();
    int following = header.getInt();
    Header found = new Header(Kind.values()[kind], descriptors, following);
    switch (found.kind) {
      case MESSAGE -> inRange("descriptors", descriptors, 0, MOST_DESCRIPTORS);
      case ALLOCATION_HANDLE -> inRange("descriptors", descriptors, 1, 1);
      case BUFFER_DESCRIPTOR, EVENT_DESCRIPTOR -> inRange("descriptors", descriptors, 0, 0);
    }
    int entries = descriptors * ENTRY_BYTES;
    inRange("bytes", following, entries, (long) entries + MOST_CONTENT_BYTES);
    return found;
  }

  static IpcFrame of(Header header, byte[] following) throws IOException {
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

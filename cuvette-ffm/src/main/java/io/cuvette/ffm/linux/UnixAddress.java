package io.cuvette.ffm.linux;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/** Writes the address of a Unix socket, a sockaddr_un. Thread-safe. */
final class UnixAddress {
  /** AF_UNIX. */
  static final int FAMILY = 1;

  /** Bytes of a path, without the 0 at its end. */
  static final int LONGEST_PATH = 107;

  static final long PATH = 2;

  private UnixAddress() {}

  /**
   * The address that is a path.
   *
   * @throws IllegalArgumentException if the path is empty, too long, or has a character 0 (Linux
   *     takes one at the start for a name that is no file, which no permissions protect)
   */
  static MemorySegment of(String path) {
    ByteBuffer bytes = encode(path);
    int length = bytes.remaining();
    if (length == 0 || length > LONGEST_PATH) {
      throw new IllegalArgumentException(
          "path of a socket: %s, %d bytes in UTF-8 (expected: 1 to %d)"
              .formatted(path, length, LONGEST_PATH));
    }
    if (path.indexOf(0) >= 0) {
      throw new IllegalArgumentException(
          "path of a socket: a character 0 at %d (expected: none)".formatted(path.indexOf(0)));
    }
    MemorySegment address = Arena.ofAuto().allocate(PATH + length + 1, Short.BYTES);
    address.set(ValueLayout.JAVA_SHORT, 0, (short) FAMILY);
    address.asSlice(PATH, length).copyFrom(MemorySegment.ofBuffer(bytes));
    return address;
  }

  private static ByteBuffer encode(String path) {
    try {
      return StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(path));
    } catch (CharacterCodingException e) {
      throw new IllegalArgumentException(
          "path of a socket: %s (expected: text that UTF-8 can write)".formatted(path), e);
    }
  }
}

package io.cuvette.internal.program;

import io.cuvette.KernelCode.Kind;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** Tells what code is by how it begins. Stateless. */
public final class CodeKinds {
  private static final byte[] ELF = {0x7F, 'E', 'L', 'F'};
  private static final byte[] FATBIN = {0x50, (byte) 0xED, 0x55, (byte) 0xBA};
  private static final byte[] LTOIR = {(byte) 0xED, 'C', 'N', 0x7F};
  private static final byte[] ARCHIVE = "!<arch>\n".getBytes(StandardCharsets.US_ASCII);

  /** Where ELF has the machine, and the number of CUDA there (EM_CUDA). */
  private static final int MACHINE = 18;

  private static final int CUDA = 190;

  /** How much of a text is looked at. */
  private static final int BEGINNING = 65_536;

  private CodeKinds() {}

  /**
   * What code is.
   *
   * @throws IllegalArgumentException if it is nothing that is known
   */
  public static Kind of(byte[] bytes) {
    Kind kind = find(bytes);
    if (kind == null) {
      throw unknown(bytes, "a cubin, a fatbin, LTO-IR, an object file or an archive");
    }
    return kind;
  }

  /** The same; null if it is nothing that is known. */
  public static @Nullable Kind find(byte[] bytes) {
    if (startsWith(bytes, ELF)) {
      return machine(bytes) == CUDA ? Kind.CUBIN : Kind.OBJECT;
    }
    if (startsWith(bytes, FATBIN)) {
      return Kind.FATBIN;
    }
    if (startsWith(bytes, LTOIR)) {
      return Kind.LTOIR;
    }
    if (startsWith(bytes, ARCHIVE)) {
      return Kind.LIBRARY;
    }
    return isPtx(bytes) ? Kind.PTX : null;
  }

  /** The failure of code that is nothing known; {@code others} is what else than PTX would do. */
  public static IllegalArgumentException unknown(byte[] bytes, String others) {
    return new IllegalArgumentException(
        "%d bytes that begin with %s (expected: PTX with .version and .target, %s)"
            .formatted(bytes.length, beginning(bytes), others));
  }

  private static String beginning(byte[] bytes) {
    StringBuilder text = new StringBuilder("[");
    for (int i = 0; i < Math.min(8, bytes.length); i++) {
      text.append(i == 0 ? "" : " ").append("%02x".formatted(bytes[i]));
    }
    return text.append(']').toString();
  }

  private static int machine(byte[] bytes) {
    return bytes.length < MACHINE + 2
        ? 0
        : (bytes[MACHINE] & 0xFF) | (bytes[MACHINE + 1] & 0xFF) << 8;
  }

  private static boolean startsWith(byte[] bytes, byte[] start) {
    return bytes.length >= start.length
        && Arrays.equals(bytes, 0, start.length, start, 0, start.length);
  }

  private static boolean isPtx(byte[] bytes) {
    String text =
        new String(bytes, 0, Math.min(bytes.length, BEGINNING), StandardCharsets.ISO_8859_1);
    return text.contains(".version") && text.contains(".target");
  }

  /**
   * Checks code that may be PTX: behind a 0 the driver would read none of it.
   *
   * @throws IllegalArgumentException if it is, and has a 0 that does not end it
   */
  public static void checkText(byte[] bytes) {
    int used = bytes.length;
    while (used > 0 && bytes[used - 1] == 0) {
      used--;
    }
    if (find(bytes) == Kind.PTX) {
      check(Kind.PTX, Arrays.copyOf(bytes, used));
    }
  }

  /** A copy without the 0 that C's texts end with. */
  public static byte[] withoutLastZero(byte[] bytes) {
    int length = bytes.length;
    return Arrays.copyOf(bytes, length > 0 && bytes[length - 1] == 0 ? length - 1 : length);
  }

  /**
   * Checks what holds for all code of a kind.
   *
   * @throws IllegalArgumentException if there are no bytes, or PTX has a 0 inside
   */
  public static void check(Kind kind, byte[] bytes) {
    if (bytes.length == 0) {
      throw new IllegalArgumentException("bytes: none (expected: the code)");
    }
    if (kind == Kind.PTX) {
      for (int i = 0; i < bytes.length; i++) {
        if (bytes[i] == 0) {
          throw new IllegalArgumentException(
              "bytes: PTX with a 0 at index %d of %d (expected: at most one, at the end)"
                  .formatted(i, bytes.length));
        }
      }
    }
  }
}

package io.cuvette.internal.base;

/** Argument checks whose messages carry the value, the rule and the numbers. Stateless. */
public final class Checks {
  private Checks() {}

  /** A number that may not be negative. */
  public static long notNegative(String name, long value) {
    if (value < 0) {
      throw new IllegalArgumentException("%s: %d (expected: >= 0)".formatted(name, value));
    }
    return value;
  }

  /** A number in a closed range. */
  public static long inRange(String name, long value, long least, long greatest) {
    if (value < least || value > greatest) {
      throw new IllegalArgumentException(
          "%s: %d (expected: %d to %d)".formatted(name, value, least, greatest));
    }
    return value;
  }

  /** A part of something: {@code offset} and {@code bytes} inside {@code size}. */
  public static void part(long offset, long bytes, long size) {
    if (offset < 0 || offset > size) {
      throw new IndexOutOfBoundsException("offset: %d (expected: 0 to %d)".formatted(offset, size));
    }
    if (bytes < 0 || bytes > size - offset) {
      throw new IndexOutOfBoundsException(
          "bytes: %d at offset %d (expected: 0 to %d, the size is %d)"
              .formatted(bytes, offset, size - offset, size));
    }
  }
}

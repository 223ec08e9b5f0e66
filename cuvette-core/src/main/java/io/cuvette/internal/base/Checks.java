package io.cuvette.internal.base;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

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

  /** A copy of a list without nulls. */
  public static <T> List<T> noNulls(String name, List<? extends T> list) {
    List<T> own = new ArrayList<>(list);
    for (int i = 0; i < own.size(); i++) {
      if (own.get(i) == null) {
        throw new NullPointerException("%s[%d]".formatted(name, i));
      }
    }
    return Collections.unmodifiableList(own);
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

package io.cuvette.cli.replay;

import java.util.Arrays;

/** A growing array of longs. Not thread-safe. */
final class LongList {
  private long[] elements = new long[1 << 10];
  private int size;

  void add(long element) {
    if (size == elements.length) {
      elements = Arrays.copyOf(elements, size * 2);
    }
    elements[size++] = element;
  }

  long[] toArray() {
    return Arrays.copyOf(elements, size);
  }
}

package io.cuvette.cli.replay;

import java.util.Arrays;

/** A growing array of ints that is a stack too. Not thread-safe. */
final class IntList {
  private int[] elements = new int[1 << 10];
  private int size;

  void add(int element) {
    if (size == elements.length) {
      elements = Arrays.copyOf(elements, size * 2);
    }
    elements[size++] = element;
  }

  boolean isEmpty() {
    return size == 0;
  }

  int removeLast() {
    return elements[--size];
  }

  int[] toArray() {
    return Arrays.copyOf(elements, size);
  }
}

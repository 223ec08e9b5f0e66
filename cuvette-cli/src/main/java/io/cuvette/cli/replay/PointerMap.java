package io.cuvette.cli.replay;

import java.util.SplittableRandom;

/**
 * Maps the pointers that are allocated to small numbers: open addressing in two arrays, at most
 * half full. Not thread-safe.
 */
final class PointerMap {
  static final int NONE = -1;

  private long[] keys = new long[1 << 10];

  /** The number plus 1; 0 is an empty place. */
  private int[] values = new int[1 << 10];

  private int size;

  /** Which no trace knows: pointers of one home each would cost as many steps as there are. */
  private final long seed = new SplittableRandom().nextLong();

  /** Adds a pointer; false if it is there already. */
  boolean add(long key, int value) {
    if (2 * (size + 1) > keys.length) {
      grow();
    }
    int place = find(key);
    if (values[place] != 0) {
      return false;
    }
    keys[place] = key;
    values[place] = value + 1;
    size++;
    return true;
  }

  /** Removes a pointer and gives its number; {@link #NONE} if it is not there. */
  int remove(long key) {
    int place = find(key);
    int value = values[place] - 1;
    if (value != NONE) {
      size--;
      close(place);
    }
    return value;
  }

  private int find(long key) {
    int place = home(key);
    while (values[place] != 0 && keys[place] != key) {
      place = next(place);
    }
    return place;
  }

  /** Moves back what follows an emptied place and would not be found behind it. */
  private void close(int emptied) {
    int hole = emptied;
    values[hole] = 0;
    for (int place = next(hole); values[place] != 0; place = next(place)) {
      int mask = keys.length - 1;
      if (((place - home(keys[place])) & mask) >= ((place - hole) & mask)) {
        keys[hole] = keys[place];
        values[hole] = values[place];
        values[place] = 0;
        hole = place;
      }
    }
  }

  private void grow() {
    long[] oldKeys = keys;
    int[] oldValues = values;
    keys = new long[oldKeys.length * 2];
    values = new int[oldKeys.length * 2];
    for (int i = 0; i < oldKeys.length; i++) {
      if (oldValues[i] != 0) {
        int place = find(oldKeys[i]);
        keys[place] = oldKeys[i];
        values[place] = oldValues[i];
      }
    }
  }

  private int next(int place) {
    return (place + 1) & (keys.length - 1);
  }

  private int home(long key) {
    long mixed = (key ^ seed) * (seed | 1);
    mixed = (mixed ^ (mixed >>> 32)) * 0x9e3779b97f4a7c15L;
    return (int) (mixed >>> 32) & (keys.length - 1);
  }
}

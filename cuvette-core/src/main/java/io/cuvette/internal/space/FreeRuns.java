package io.cuvette.internal.space;

import io.cuvette.internal.index.BlockTable;
import io.cuvette.internal.index.SizeIndex;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** The free runs of a space by their tags and sizes. Not thread-safe. */
final class FreeRuns {
  /** Smaller sizes are found fastest; there is an index for each stream, so that none is large. */
  private static final int DENSE_UNITS = 1 << 13;

  private final BlockTable blocks;
  private @Nullable SizeIndex[] indexes = new SizeIndex[4];
  private long[] units = new long[4];
  private int count;

  FreeRuns(BlockTable blocks) {
    this.blocks = blocks;
  }

  /** Makes room for a tag. */
  void add(int tag) {
    if (tag >= indexes.length) {
      long[] longer = Arrays.copyOf(units, tag * 2);
      indexes = Arrays.copyOf(indexes, tag * 2);
      units = longer;
    }
    if (indexes[tag] == null) {
      indexes[tag] = new SizeIndex(blocks, DENSE_UNITS);
    }
  }

  int tags() {
    return indexes.length;
  }

  int count() {
    return count;
  }

  long units(int tag) {
    return tag < units.length ? units[tag] : 0;
  }

  SizeIndex index(int tag) {
    SizeIndex index = tag < indexes.length ? indexes[tag] : null;
    if (index == null) {
      throw new IllegalStateException("tag: " + tag + " (expected: a tag in use)");
    }
    return index;
  }

  /** Makes room for some parts of a run of so many units. */
  void reserve(int tag, long units) {
    index(tag).reserveUpTo(units, Space.SPLITS);
  }

  /** The largest of all tags, in units. */
  long largest() {
    long largest = 0;
    for (int tag = 0; tag < indexes.length; tag++) {
      largest = units[tag] == 0 ? largest : Math.max(largest, index(tag).largest());
    }
    return largest;
  }

  /** The smallest of a tag; NONE if there is none. */
  int first(int tag) {
    return index(tag).atLeast(1, SizeIndex.ALL);
  }

  /** The one after another of the same tag, in the order of their sizes; NONE if there is none. */
  int after(int run) {
    int same = blocks.after(run);
    return same != BlockTable.NOTHING
        ? same
        : index(blocks.chunk(run)).atLeast(blocks.units(run) + 1, SizeIndex.ALL);
  }

  void insert(int run) {
    int tag = blocks.chunk(run);
    index(tag).insert(run);
    units[tag] += blocks.units(run);
    count++;
  }

  void remove(int run) {
    int tag = blocks.chunk(run);
    index(tag).remove(run);
    units[tag] -= blocks.units(run);
    count--;
  }
}

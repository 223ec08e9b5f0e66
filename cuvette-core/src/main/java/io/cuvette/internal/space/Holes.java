package io.cuvette.internal.space;

import io.cuvette.internal.index.BlockTable;
import java.util.Arrays;

/** The holes of a space, in no order; a hole knows its place in here. Not thread-safe. */
final class Holes {
  private final BlockTable blocks;
  private int[] all = new int[16];
  private int count;

  Holes(BlockTable blocks) {
    this.blocks = blocks;
  }

  int count() {
    return count;
  }

  int at(int place) {
    return all[place];
  }

  /** Makes room for so many more. */
  void reserve(int more) {
    if (count + more > all.length) {
      all = Arrays.copyOf(all, Math.max(count + more, all.length * 2));
    }
  }

  void add(int run) {
    reserve(1);
    blocks.chunk(run, Space.HOLE);
    blocks.base(run, count);
    all[count++] = run;
  }

  void remove(int run) {
    int at = (int) blocks.base(run);
    int last = all[--count];
    all[at] = last;
    blocks.base(last, at);
  }

  /** Makes a run a hole, with those beside it. */
  void make(int run) {
    int merged = run;
    int prev = blocks.prev(run);
    if (blocks.chunk(prev) == Space.HOLE) { // NONE is no hole
      blocks.absorbNext(prev);
      merged = prev;
    } else {
      add(run);
    }
    int next = blocks.next(merged);
    if (blocks.chunk(next) == Space.HOLE) {
      remove(next);
      blocks.absorbNext(merged);
    }
  }
}

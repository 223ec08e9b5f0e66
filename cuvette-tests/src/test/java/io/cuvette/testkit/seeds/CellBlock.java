package io.cuvette.testkit.seeds;

import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Memory of eight cells, of which each has its own uses. Not thread-safe. */
final class CellBlock {
  static final int CELLS = 8;

  /** Where the memory is from. */
  enum Kind {
    PLAIN,
    ORDERED,
    PINNED,
    MANAGED,
    GRAPH
  }

  /** How work uses a cell. */
  enum Use {
    READ,
    ADD,
    WRITE;

    /** Two that are alike may be at once, unless they write. */
    boolean conflicts(Use other) {
      return this != other || this == WRITE;
    }

    static Use of(Use one, Use other) {
      return one == other ? one : WRITE;
    }
  }

  /** Some words of a block, and what they must be. */
  static final class Cell extends CellUses {
    final CellBlock block;
    final int index;
    int[] words;

    private Cell(CellBlock block, int index) {
      this.block = block;
      this.index = index;
      this.words = new int[block.words];
    }

    long address() {
      return block.address + offset();
    }

    long offset() {
      return (long) index * block.words * Integer.BYTES;
    }

    MemorySegment onHost() {
      if (block.host == null) {
        throw new IllegalStateException("no memory of the host");
      }
      return block.host.asSlice(offset(), (long) block.words * Integer.BYTES);
    }
  }

  final Kind kind;
  final int words;
  final Cell[] cells = new Cell[CELLS];
  long address;

  /** As the host sees it; null if it does not. */
  @Nullable MemorySegment host;

  CellBlock(Kind kind, int words) {
    this.kind = kind;
    this.words = words;
    for (int i = 0; i < CELLS; i++) {
      cells[i] = new Cell(this, i);
    }
  }

  long bytes() {
    return (long) CELLS * words * Integer.BYTES;
  }

  /** A use of all of it. */
  Map<Cell, Use> all(Use use) {
    Map<Cell, Use> all = new LinkedHashMap<>();
    for (Cell cell : cells) {
      all.put(cell, use);
    }
    return all;
  }
}

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

  /** Some words of a block: what they must be, and who used them last. */
  static final class Cell {
    final CellBlock block;
    final int index;
    int[] words;
    final Map<ProgramStream, Integer> written = new LinkedHashMap<>();
    private final Map<ProgramStream, Integer> added = new LinkedHashMap<>();
    private final Map<ProgramStream, Integer> read = new LinkedHashMap<>();

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

    /** What must come before a use. */
    Map<ProgramStream, Integer> before(Use use) {
      Map<ProgramStream, Integer> all = new LinkedHashMap<>(written);
      if (use != Use.READ) {
        ProgramStream.merge(all, read);
      }
      if (use != Use.ADD) {
        ProgramStream.merge(all, added);
      }
      return all;
    }

    void note(Use use, ProgramStream stream, int number) {
      if (use == Use.WRITE) {
        forget();
      }
      Map<ProgramStream, Integer> uses =
          switch (use) {
            case READ -> read;
            case ADD -> added;
            case WRITE -> written;
          };
      uses.merge(stream, number, Math::max);
    }

    /** Nothing that comes need care for what was. */
    void forget() {
      written.clear();
      added.clear();
      read.clear();
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

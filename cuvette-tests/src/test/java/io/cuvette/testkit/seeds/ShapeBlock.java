package io.cuvette.testkit.seeds;

import io.cuvette.Buffer;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Memory of rows and columns of cells, of which each has its own uses. Not thread-safe. */
final class ShapeBlock {
  static final int ROWS = 4;
  static final int COLUMNS = 6;

  /** Bytes that all have one word again and again. */
  static final class Cell extends CellUses {
    final ShapeBlock block;
    final int row;
    final int column;
    int word;

    private Cell(ShapeBlock block, int row, int column) {
      this.block = block;
      this.row = row;
      this.column = column;
    }

    long offset() {
      return (row * COLUMNS + column) * block.cellBytes;
    }

    Buffer part() {
      return block.buffer.slice(offset(), block.cellBytes);
    }

    /** As the host sees it. */
    MemorySegment onHost() {
      if (block.host == null) {
        throw new IllegalStateException("no memory of the host");
      }
      return block.host.asSlice(offset(), block.cellBytes);
    }
  }

  final Buffer buffer;

  /** Where kernels and fills can use it; -1 if everywhere. */
  final int device;

  /** Null if the host does not see it. */
  final @Nullable MemorySegment host;

  /** Whether a copy finds out by a segment that it is page-locked. */
  final boolean isPinned;

  final long cellBytes;
  final Cell[][] cells = new Cell[ROWS][COLUMNS];

  /** The host's work that uses the buffer. */
  private final List<CompletableFuture<?>> callbacks = new ArrayList<>();

  ShapeBlock(
      Buffer buffer, int device, @Nullable MemorySegment host, boolean isPinned, long cellBytes) {
    this.buffer = buffer;
    this.device = device;
    this.host = host;
    this.isPinned = isPinned;
    this.cellBytes = cellBytes;
    for (int row = 0; row < ROWS; row++) {
      for (int column = 0; column < COLUMNS; column++) {
        cells[row][column] = new Cell(this, row, column);
      }
    }
  }

  static long bytes(long cellBytes) {
    return ROWS * COLUMNS * cellBytes;
  }

  /** So many bytes from row to row. */
  long pitch() {
    return COLUMNS * cellBytes;
  }

  /** The cells of a rectangle, row by row. */
  List<Cell> box(int row, int column, int rows, int columns) {
    List<Cell> box = new ArrayList<>();
    for (int i = 0; i < rows; i++) {
      for (int j = 0; j < columns; j++) {
        box.add(cells[row + i][column + j]);
      }
    }
    return box;
  }

  List<Cell> all() {
    return box(0, 0, ROWS, COLUMNS);
  }

  void usedBy(CompletableFuture<?> callback) {
    callbacks.add(callback);
  }

  /** The host's work comes first: it cannot use what is closed. */
  void close() throws Exception {
    for (CompletableFuture<?> callback : callbacks) {
      var _ = callback.get(60, TimeUnit.SECONDS);
    }
    buffer.close();
  }

  /** Compares bytes with what a cell must have. */
  static void check(MemorySegment read, int word, Object what) {
    for (long at = 0; at < read.byteSize(); at += Integer.BYTES) {
      int got = read.get(ValueLayout.JAVA_INT_UNALIGNED, at);
      if (got != word) {
        throw new AssertionError("%s: %x at %d (expected: %x)".formatted(what, got, at, word));
      }
    }
  }

  static void write(MemorySegment memory, int word) {
    for (long at = 0; at < memory.byteSize(); at += Integer.BYTES) {
      memory.set(ValueLayout.JAVA_INT_UNALIGNED, at, word);
    }
  }
}

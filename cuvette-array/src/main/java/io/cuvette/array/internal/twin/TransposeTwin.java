package io.cuvette.array.internal.twin;

import io.cuvette.array.internal.kernel.TilesArgument;
import java.lang.foreign.MemorySegment;

/**
 * A kernel of common.cu for transposition.
 *
 * @param bytes the size of an element
 */
public record TransposeTwin(int bytes) {
  private static final int TILE = 64;

  /** Writes some matrices. */
  public void run(TilesArgument tiles, Cells out, Cells in) {
    for (long m = 0; m < tiles.matrices(); m++) {
      for (long row = 0; row < tiles.rows(); row += TILE) {
        for (long column = 0; column < tiles.columns(); column += TILE) {
          move(tiles, m, row, column, out, in);
        }
      }
    }
  }

  private void move(TilesArgument t, long matrix, long row, long column, Cells out, Cells in) {
    int rows = (int) Math.min(TILE, t.rows() - row);
    int columns = (int) Math.min(TILE, t.columns() - column);
    MemorySegment read = MemorySegment.ofArray(new byte[rows * columns * bytes]);
    MemorySegment written = MemorySegment.ofArray(new byte[rows * columns * bytes]);
    long from = t.inOffset() + matrix * t.inMatrix() + row * bytes;
    long to = t.outOffset() + matrix * t.outMatrix() + column * bytes;
    long part = (long) rows * bytes;
    for (int c = 0; c < columns; c++) {
      in.read(from + (column + c) * t.inColumn(), read.asSlice(c * part, part));
      for (int r = 0; r < rows; r++) {
        MemorySegment.copy(
            read, c * part + (long) r * bytes, written, ((long) r * columns + c) * bytes, bytes);
      }
    }
    long line = (long) columns * bytes;
    for (int r = 0; r < rows; r++) {
      out.write(to + (row + r) * t.outRow(), written.asSlice(r * line, line));
    }
  }
}

package io.cuvette.array.internal.kernel;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * A transposition of matrices: {@code Tiles} of common.cu. Elements of a row of the result lie side
 * by side, as those of a column of the operand do. All but the sizes are in bytes.
 *
 * @param rows the rows of the result
 * @param columns the columns of the result
 * @param outRow from row to row of the result
 * @param inColumn from column to column of the operand
 * @param outMatrix from matrix to matrix of the result
 * @param inMatrix from matrix to matrix of the operand
 * @param matrices how many matrices there are
 */
public record TilesArgument(
    long rows,
    long columns,
    long outOffset,
    long inOffset,
    long outRow,
    long inColumn,
    long outMatrix,
    long inMatrix,
    long matrices) {
  /** The size of the structure in bytes. */
  public static final int BYTES = 72;

  /** The rows and columns of a tile. */
  public static final int TILE = 32;

  /** Fewer rows or columns are not worth tiles. */
  private static final int FEW = 16;

  /** The most blocks of a grid in y and in z. */
  private static final long MOST_BLOCKS = 65_535;

  /**
   * The copy of an array as a transposition.
   *
   * @param shape the size of each axis
   * @return null if it is none, or too small or too large for it
   */
  public static @Nullable TilesArgument of(long[] shape, LoopPlan.Array out, LoopPlan.Array in) {
    Axes axes = Axes.anyOrder(shape, out.strides(), in.strides());
    int rank = axes.shape().length;
    long[] to = axes.strides()[0];
    long[] from = axes.strides()[1];
    int bytes = out.bytes();
    if (rank < 2 || rank > 3 || to[0] != bytes || from[0] == bytes) {
      return null;
    }
    int row = from[1] == bytes ? 1 : rank - 1;
    int matrix = 3 - row;
    boolean isBatch = rank == 3;
    long matrices = isBatch ? axes.shape()[matrix] : 1;
    boolean isTransposed =
        from[row] == bytes
            && axes.shape()[0] >= FEW
            && axes.shape()[row] >= FEW
            && axes.shape()[row] <= MOST_BLOCKS * TILE
            && matrices <= MOST_BLOCKS;
    return isTransposed
        ? new TilesArgument(
            axes.shape()[row],
            axes.shape()[0],
            out.offset(),
            in.offset(),
            to[row],
            from[0],
            isBatch ? to[matrix] : 0,
            isBatch ? from[matrix] : 0,
            matrices)
        : null;
  }

  /** The structure. */
  public MemorySegment structure() {
    return MemorySegment.ofArray(
        new long[] {
          rows, columns, outOffset, inOffset, outRow, inColumn, outMatrix, inMatrix, matrices
        });
  }

  /** Reads the structure. */
  public static TilesArgument of(MemorySegment s) {
    long[] v = LoopArgument.get(s, 0, BYTES / Long.BYTES);
    return new TilesArgument(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]);
  }
}

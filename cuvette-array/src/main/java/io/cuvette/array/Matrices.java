package io.cuvette.array;

import io.cuvette.driver.MatrixProduct.Operand;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** How the matrices in the last two axes of an array lie. Stateless. */
final class Matrices {
  private Matrices() {}

  /** Whether the rows or the columns of all matrices have no gaps in them. */
  static boolean isByLines(Layout layout) {
    return operand(layout, 0) != null;
  }

  /** The matrices with rows and columns exchanged. */
  static BaseArray<?> transposed(BaseArray<?> a) {
    return (BaseArray<?>) a.view(transposed(a.layout()));
  }

  /** The distance of columns whose elements lie side by side; null if they do not. */
  static @Nullable Operand line(Layout layout, long stride) {
    long rows = layout.shape(-2);
    long columns = layout.shape(-1);
    boolean isDense = rows == 1 || layout.stride(-2) == 1;
    long leading = columns == 1 ? Math.max(1, rows) : layout.stride(-1);
    return isDense && leading >= Math.max(1, rows) ? new Operand(false, leading, stride) : null;
  }

  /** As cuBLAS reads them: by columns, or by rows as transposed; null if it cannot. */
  static @Nullable Operand operand(Layout layout, long stride) {
    Operand byColumns = line(layout, stride);
    if (byColumns != null) {
      return byColumns;
    }
    Operand byRows = line(transposed(layout), stride);
    return byRows == null ? null : new Operand(true, byRows.leading(), stride);
  }

  private static Layout transposed(Layout layout) {
    int rank = layout.rank();
    int[] axes = IntStream.range(0, rank).toArray();
    axes[rank - 1] = rank - 2;
    axes[rank - 2] = rank - 1;
    return layout.transpose(axes);
  }
}

package io.cuvette.driver;

import java.util.Objects;

/**
 * A product of matrices C = A · B, or of as many as a batch has. Matrices lie by columns, as in
 * Fortran; distances count elements. A value.
 *
 * @param type the type of all elements
 * @param rows the rows of A and of C, >= 1
 * @param columns the columns of B and of C, >= 1
 * @param inner the columns of A and rows of B, >= 1
 * @param a where A lies in its memory
 * @param b where B lies in its memory
 * @param c where C lies in its memory, not transposed
 * @param batch how many products there are, >= 1
 */
public record MatrixProduct(
    MatrixType type,
    long rows,
    long columns,
    long inner,
    Operand a,
    Operand b,
    Operand c,
    long batch) {

  /**
   * How a matrix lies in memory.
   *
   * @param transposed whether it lies by rows
   * @param leading from column to column, or from row to row if it is transposed; >= the elements
   *     of one
   * @param stride from matrix to matrix, >= 0; 0 if all products have the same one
   */
  public record Operand(boolean transposed, long leading, long stride) {

    /** How many elements the memory has at least, for a matrix of some rows and columns. */
    private long elements(long rows, long columns, long batch) {
      long lines = transposed ? rows : columns;
      long length = transposed ? columns : rows;
      return Math.addExact(
          Math.multiplyExact(batch - 1, stride),
          Math.addExact(Math.multiplyExact(lines - 1, leading), length));
    }

    /** Whether there is no gap in it. */
    private boolean isWhole(long rows, long columns, long batch) {
      return leading == (transposed ? columns : rows)
          && (batch == 1 || stride == 0 || stride == rows * columns);
    }

    private void check(String name, long rows, long columns, long batch) {
      long length = transposed ? columns : rows;
      if (leading < length) {
        throw new IllegalArgumentException(
            "%s: leading %d (expected: >= %d)".formatted(name, leading, length));
      }
      if (stride < 0) {
        throw new IllegalArgumentException(
            "%s: stride %d (expected: >= 0)".formatted(name, stride));
      }
      try {
        Math.multiplyExact(elements(rows, columns, batch), MAX_BYTES);
      } catch (ArithmeticException e) {
        throw new IllegalArgumentException(
            "%s: %s of %d x %d (expected: at most 2^63-1 bytes)"
                .formatted(name, this, rows, columns),
            e);
      }
    }
  }

  private static final long MAX_BYTES = 16;

  /**
   * Checks the sizes.
   *
   * @throws IllegalArgumentException if one is out of its range
   */
  public MatrixProduct {
    Objects.requireNonNull(type, "type");
    Objects.requireNonNull(a, "a");
    Objects.requireNonNull(b, "b");
    Objects.requireNonNull(c, "c");
    checkPositive("rows", rows);
    checkPositive("columns", columns);
    checkPositive("inner", inner);
    checkPositive("batch", batch);
    a.check("a", rows, inner, batch);
    b.check("b", inner, columns, batch);
    c.check("c", rows, columns, batch);
    if (c.transposed || (batch > 1 && c.stride < c.leading * (columns - 1) + rows)) {
      throw new IllegalArgumentException(
          "c: %s (expected: not transposed, and matrices one behind the other)".formatted(c));
    }
  }

  private static void checkPositive(String name, long value) {
    if (value < 1) {
      throw new IllegalArgumentException("%s: %d (expected: >= 1)".formatted(name, value));
    }
  }

  /** {@return how many bytes the memory of A has at least} */
  public long bytesOfA() {
    return a.elements(rows, inner, batch) * type.bytes();
  }

  /** {@return how many bytes the memory of B has at least} */
  public long bytesOfB() {
    return b.elements(inner, columns, batch) * type.bytes();
  }

  /** {@return how many bytes the memory of C has at least} */
  public long bytesOfC() {
    return c.elements(rows, columns, batch) * type.bytes();
  }

  /** {@return whether all bytes of the memory of A are read} */
  public boolean isWholeA() {
    return a.isWhole(rows, inner, batch);
  }

  /** {@return whether all bytes of the memory of B are read} */
  public boolean isWholeB() {
    return b.isWhole(inner, columns, batch);
  }

  /** {@return whether all bytes of the memory of C are written} */
  public boolean isWholeC() {
    return c.isWhole(rows, columns, batch);
  }
}

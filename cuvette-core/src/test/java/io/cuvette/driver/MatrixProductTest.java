package io.cuvette.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.MatrixProduct.Operand;
import org.junit.jupiter.api.Test;

/** Which bytes the matrices of a product have, and which products there are. */
class MatrixProductTest {
  private static final int ROWS = 5;
  private static final int COLUMNS = 4;
  private static final int INNER = 3;

  private static Operand byColumns(long leading, long stride) {
    return new Operand(false, leading, stride);
  }

  private static Operand byRows(long leading, long stride) {
    return new Operand(true, leading, stride);
  }

  private static MatrixProduct product(Operand a, Operand b, Operand c, long batch) {
    return new MatrixProduct(MatrixType.FLOAT, ROWS, COLUMNS, INNER, a, b, c, batch);
  }

  private static MatrixProduct ofA(Operand a, long batch) {
    return product(a, byColumns(INNER, 0), byColumns(ROWS, ROWS * COLUMNS), batch);
  }

  private static MatrixProduct ofB(Operand b, long batch) {
    return product(byColumns(ROWS, 0), b, byColumns(ROWS, ROWS * COLUMNS), batch);
  }

  private static MatrixProduct ofC(Operand c, long batch) {
    return product(byColumns(ROWS, 0), byColumns(INNER, 0), c, batch);
  }

  @Test
  void matrix_isWhole_whereNothingIsBetweenItsLinesOrBehindThem() {
    assertThat(ofA(byColumns(ROWS, 0), 1).isWholeA()).isTrue();
    assertThat(ofA(byColumns(ROWS + 1, 0), 1).isWholeA()).isFalse();
    assertThat(ofA(byRows(INNER, 0), 1).isWholeA()).isTrue();
    assertThat(ofA(byRows(INNER + 1, 0), 1).isWholeA()).isFalse();
    assertThat(ofA(byRows(ROWS, 0), 1).isWholeA()).isFalse();
    assertThat(ofB(byColumns(INNER, 0), 1).isWholeB()).isTrue();
    assertThat(ofB(byColumns(INNER + 1, 0), 1).isWholeB()).isFalse();
    assertThat(ofB(byRows(COLUMNS, 0), 1).isWholeB()).isTrue();
    assertThat(ofB(byRows(COLUMNS + 1, 0), 1).isWholeB()).isFalse();
    assertThat(ofC(byColumns(ROWS, 0), 1).isWholeC()).isTrue();
    assertThat(ofC(byColumns(ROWS + 1, 0), 1).isWholeC()).isFalse();
  }

  @Test
  void matricesOfABatch_areWhole_whereTheyAreOneOrFollowEachOther() {
    assertThat(ofA(byColumns(ROWS, 0), 2).isWholeA()).isTrue();
    assertThat(ofA(byColumns(ROWS, ROWS * INNER), 2).isWholeA()).isTrue();
    assertThat(ofA(byColumns(ROWS, ROWS * INNER + 1), 2).isWholeA()).isFalse();
    assertThat(ofA(byColumns(ROWS, ROWS * INNER + 1), 1).isWholeA()).isTrue();
    assertThat(ofB(byRows(COLUMNS, INNER * COLUMNS), 2).isWholeB()).isTrue();
    assertThat(ofB(byRows(COLUMNS, INNER * COLUMNS - 1), 2).isWholeB()).isFalse();
    assertThat(ofC(byColumns(ROWS, ROWS * COLUMNS + 1), 2).isWholeC()).isFalse();
  }

  @Test
  void bytes_areThoseFromTheFirstToTheLast() {
    assertThat(ofA(byColumns(7, 100), 1).bytesOfA()).isEqualTo(4 * (7 * 2 + 5));
    assertThat(ofA(byColumns(7, 100), 3).bytesOfA()).isEqualTo(4 * (200 + 7 * 2 + 5));
    assertThat(ofA(byRows(7, 100), 3).bytesOfA()).isEqualTo(4 * (200 + 7 * 4 + 3));
    assertThat(ofB(byColumns(7, 100), 3).bytesOfB()).isEqualTo(4 * (200 + 7 * 3 + 3));
    assertThat(ofB(byRows(7, 100), 3).bytesOfB()).isEqualTo(4 * (200 + 7 * 2 + 4));
    assertThat(ofC(byColumns(7, 100), 3).bytesOfC()).isEqualTo(4 * (200 + 7 * 3 + 5));
  }

  @Test
  void numbersOfAProduct_areOneAtLeast() {
    String[] names = {"rows", "columns", "inner", "batch"};
    Operand any = byColumns(1, 1);
    for (int i = 0; i < names.length; i++) {
      for (long wrong : new long[] {0, -1, Long.MIN_VALUE}) {
        long[] n = {1, 1, 1, 1};
        n[i] = wrong;
        assertRefused(
            "%s: %d (expected: >= 1)".formatted(names[i], wrong),
            () -> new MatrixProduct(MatrixType.HALF, n[0], n[1], n[2], any, any, any, n[3]));
      }
    }
    assertThat(new MatrixProduct(MatrixType.HALF, 1, 1, 1, any, any, any, 1).bytesOfC())
        .isEqualTo(2);
  }

  /** A complex number lies as its two parts do. */
  @Test
  void matrices_beginAtMultiplesOfTheirNumbers_orOfTheirParts() {
    for (MatrixType type : MatrixType.values()) {
      int[] bytesAndAlignment =
          switch (type) {
            case HALF, BFLOAT16 -> new int[] {2, 2};
            case FLOAT -> new int[] {4, 4};
            case DOUBLE -> new int[] {8, 8};
            case COMPLEX_FLOAT -> new int[] {8, 4};
            case COMPLEX_DOUBLE -> new int[] {16, 8};
          };
      assertThat(new int[] {type.bytes(), type.alignment()})
          .as("%s", type)
          .containsExactly(bytesAndAlignment);
    }
  }

  @Test
  void results_lieByColumns_andDoNotMeet() {
    String rule = "(expected: not transposed, and matrices one behind the other)";
    assertRefused(rule, () -> ofC(byRows(COLUMNS, 100), 1));
    int least = 7 * (COLUMNS - 1) + ROWS;
    assertThat(ofC(byColumns(7, least), 2).bytesOfC()).isEqualTo(4 * 2 * least);
    assertRefused(rule, () -> ofC(byColumns(7, least - 1), 2));
    assertThat(ofC(byColumns(7, 0), 1).bytesOfC()).isEqualTo(4 * least);
  }

  @Test
  void sizes_areThoseOfMatrices() {
    assertRefused("a: leading 4 (expected: >= 5)", () -> ofA(byColumns(4, 0), 1));
    assertRefused("a: leading 2 (expected: >= 3)", () -> ofA(byRows(2, 0), 1));
    assertRefused("b: leading 2 (expected: >= 3)", () -> ofB(byColumns(2, 0), 1));
    assertRefused("b: leading 3 (expected: >= 4)", () -> ofB(byRows(3, 0), 1));
    assertRefused("c: leading 4 (expected: >= 5)", () -> ofC(byColumns(4, 99), 1));
    assertRefused("a: stride -1 (expected: >= 0)", () -> ofA(byColumns(ROWS, -1), 1));
    assertRefused("batch: 0 (expected: >= 1)", () -> ofA(byColumns(ROWS, 0), 0));
    assertRefused("2^63-1 bytes", () -> ofA(byColumns(Long.MAX_VALUE / 16, 0), 1));
    assertRefused("2^63-1 bytes", () -> ofB(byColumns(INNER, Long.MAX_VALUE / 8), 2));
  }

  private static void assertRefused(String rule, Runnable product) {
    assertThatThrownBy(product::run)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(rule);
  }
}

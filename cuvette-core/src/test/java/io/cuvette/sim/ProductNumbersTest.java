package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.driver.MatrixType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

/** Numbers of products of matrices: which matrices of a batch, and how they are rounded. */
class ProductNumbersTest extends SimTestBase {
  private static final int SIDE = 2;
  private static final int BATCH = 3;
  private static final int BFLOATS = 128;

  private final long handle = driver.math().mathHandleCreate(MathLibrary.CUBLAS, 0);

  /** What the device is given, and its copy on the host, which is written before and read after. */
  private record Matrix(long address, MemorySegment host) {}

  private Matrix matrix(long bytes) {
    return new Matrix(
        driver.memory().memAlloc(0, bytes), driver.memory().memHostAlloc(0, bytes, 0));
  }

  private void multiply(MatrixProduct product, Matrix c, Matrix a, Matrix b) {
    for (Matrix each : new Matrix[] {a, b, c}) {
      driver.transfers().memcpyHtoDAsync(0, each.address, each.host, 0);
    }
    driver.math().gemm(0, handle, product, c.address, a.address, b.address);
    driver.transfers().memcpyDtoHAsync(0, c.host, c.address, 0);
    driver.streams().streamSynchronize(0, 0);
  }

  private static float at(Matrix matrix, long stride, int i, int row, int column) {
    long index = i * stride + (long) column * SIDE + row;
    return matrix.host.getAtIndex(ValueLayout.JAVA_FLOAT, index);
  }

  @Test
  void matricesOfABatch_areTheNextOfEachSide_orTheSameAgain() {
    int all = BATCH * SIDE * SIDE;
    Matrix a = matrix(all * 4L);
    Matrix b = matrix(all * 4L);
    Matrix c = matrix(all * 4L);
    for (int i = 0; i < all; i++) {
      a.host.setAtIndex(ValueLayout.JAVA_FLOAT, i, i + 1);
      b.host.setAtIndex(ValueLayout.JAVA_FLOAT, i, 100 - 3 * i);
    }
    for (int of = 0; of < 16; of++) {
      boolean ofA = (of & 1) != 0;
      boolean ofB = (of & 2) != 0;
      long strideA = (of & 4) != 0 ? SIDE * SIDE : 0;
      long strideB = (of & 8) != 0 ? SIDE * SIDE : 0;
      c.host.fill((byte) 0);
      MatrixProduct product =
          new MatrixProduct(
              MatrixType.FLOAT,
              SIDE,
              SIDE,
              SIDE,
              new MatrixProduct.Operand(ofA, SIDE, strideA),
              new MatrixProduct.Operand(ofB, SIDE, strideB),
              new MatrixProduct.Operand(false, SIDE, SIDE * SIDE),
              BATCH);
      multiply(product, c, a, b);
      for (int i = 0; i < all; i++) {
        int n = i / (SIDE * SIDE);
        int column = i / SIDE % SIDE;
        int row = i % SIDE;
        float sum = 0;
        for (int k = 0; k < SIDE; k++) {
          sum +=
              (ofA ? at(a, strideA, n, k, row) : at(a, strideA, n, row, k))
                  * (ofB ? at(b, strideB, n, column, k) : at(b, strideB, n, k, column));
        }
        assertThat(at(c, SIDE * SIDE, n, row, column)).as("%s, %d", product, i).isEqualTo(sum);
      }
    }
  }

  /** The nearest, of two that are as near the even one; each product here is exact as a float. */
  @Test
  void bfloats_areRoundedToTheNearest() {
    Matrix a = matrix(BFLOATS * 2L);
    Matrix b = matrix(BFLOATS * 2L);
    Matrix c = matrix(BFLOATS * BFLOATS * 2L);
    for (int i = 0; i < BFLOATS; i++) { // all from 1 to 2
      a.host.setAtIndex(ValueLayout.JAVA_SHORT, i, (short) (0x3F80 + i));
      b.host.setAtIndex(ValueLayout.JAVA_SHORT, i, (short) (0x3F80 + i));
    }
    MatrixProduct product =
        new MatrixProduct(
            MatrixType.BFLOAT16,
            BFLOATS,
            BFLOATS,
            1,
            new MatrixProduct.Operand(false, BFLOATS, 0),
            new MatrixProduct.Operand(false, 1, 0),
            new MatrixProduct.Operand(false, BFLOATS, 0),
            1);
    multiply(product, c, a, b);
    int ties = 0;
    for (int i = 0; i < BFLOATS * BFLOATS; i++) {
      int row = i % BFLOATS;
      int column = i / BFLOATS;
      float exact = (1 + row / 128f) * (1 + column / 128f);
      int below = Float.floatToRawIntBits(exact) >>> 16;
      float down = exact - Float.intBitsToFloat(below << 16);
      float up = Float.intBitsToFloat((below + 1) << 16) - exact;
      boolean isTie = down == up;
      ties += isTie ? 1 : 0;
      int rounded = down < up || (isTie && below % 2 == 0) ? below : below + 1;
      assertThat(c.host.getAtIndex(ValueLayout.JAVA_SHORT, i) & 0xFFFF)
          .as("%s", exact)
          .isEqualTo(rounded);
    }
    assertThat(ties).isPositive();
  }

  /** Whatever numbers that are none have in them, the device writes the one of its own. */
  @Test
  void bfloatsThatAreNone_areOneNumber_andTheOthersWithoutEndStay() {
    Matrix a = matrix(2L);
    Matrix b = matrix(2L);
    Matrix c = matrix(2L);
    MatrixProduct.Operand one = new MatrixProduct.Operand(false, 1, 0);
    MatrixProduct product = new MatrixProduct(MatrixType.BFLOAT16, 1, 1, 1, one, one, one, 1);
    int infinite = 0x7F80;
    int none = 0x7FFF;
    int[][] cases = {
      {0x7FC0, 0x3F80, none},
      {0x7FFF, 0x3F80, none},
      {0xFFFF, 0x3F80, none},
      {0x7F81, 0x3F80, none},
      {infinite, 0, none},
      {infinite, 0x3F80, infinite},
      {infinite, 0xBF80, infinite | 0x8000},
      {0x7F7F, 0x4000, infinite},
      {0x8000, 0x3F80, 0},
    };
    for (int[] each : cases) {
      a.host.set(ValueLayout.JAVA_SHORT, 0, (short) each[0]);
      b.host.set(ValueLayout.JAVA_SHORT, 0, (short) each[1]);
      multiply(product, c, a, b);
      assertThat(c.host.get(ValueLayout.JAVA_SHORT, 0) & 0xFFFF)
          .as("%x times %x", each[0], each[1])
          .isEqualTo(each[2]);
    }
  }

  /** Numbers one behind the other are matrices too, each of one. */
  @Test
  void matricesOfOneNumber_areTheNextOfEachSide() {
    Matrix a = matrix(BATCH * 4L);
    Matrix b = matrix(BATCH * 4L);
    Matrix c = matrix(BATCH * 4L);
    for (int i = 0; i < BATCH; i++) {
      a.host.setAtIndex(ValueLayout.JAVA_FLOAT, i, i + 2);
      b.host.setAtIndex(ValueLayout.JAVA_FLOAT, i, 10 - 3 * i);
    }
    for (int of = 0; of < 4; of++) {
      int strideA = of & 1;
      int strideB = of >> 1;
      MatrixProduct product =
          new MatrixProduct(
              MatrixType.FLOAT,
              1,
              1,
              1,
              new MatrixProduct.Operand(false, 1, strideA),
              new MatrixProduct.Operand(false, 1, strideB),
              new MatrixProduct.Operand(false, 1, 1),
              BATCH);
      multiply(product, c, a, b);
      for (int i = 0; i < BATCH; i++) {
        assertThat(c.host.getAtIndex(ValueLayout.JAVA_FLOAT, i))
            .as("strides %d and %d, %d", strideA, strideB, i)
            .isEqualTo((i * strideA + 2) * (10 - 3 * i * strideB));
      }
    }
  }
}

package io.cuvette.testkit;

import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.driver.MatrixProduct.Operand;
import io.cuvette.driver.MatrixType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Random;

/** A random product of matrices of small integers, which each type holds exactly. */
final class ProductCase {
  private static final int MOST = 12;
  private static final int VALUES = 5;
  private static final int BFLOAT16_SHIFT = 16;

  private final MatrixProduct product;
  private final MemorySegment a;
  private final MemorySegment b;

  ProductCase(MatrixType type, Random random) {
    int m = 1 + random.nextInt(MOST);
    int n = 1 + random.nextInt(MOST);
    int k = 1 + random.nextInt(MOST);
    int batch = 1 + random.nextInt(3);
    product =
        new MatrixProduct(
            type,
            m,
            n,
            k,
            operand(random, m, k, random.nextBoolean(), true),
            operand(random, k, n, random.nextBoolean(), true),
            operand(random, m, n, false, false),
            batch);
    a = filled(type, product.bytesOfA(), random);
    b = filled(type, product.bytesOfB(), random);
  }

  private static Operand operand(
      Random random, int rows, int columns, boolean transposed, boolean mayRepeat) {
    int leading = (transposed ? columns : rows) + random.nextInt(3);
    int lines = transposed ? rows : columns;
    boolean repeats = mayRepeat && random.nextInt(4) == 0;
    return new Operand(
        transposed, leading, repeats ? 0 : (long) leading * lines + random.nextInt(3));
  }

  private static MemorySegment filled(MatrixType type, long bytes, Random random) {
    MemorySegment memory = Arena.ofAuto().allocate(bytes, 16);
    int parts = type.isComplex() ? 2 : 1;
    for (long i = 0; i < bytes / type.bytes() * parts; i++) {
      put(type, memory, i, random.nextInt(2 * VALUES + 1) - VALUES);
    }
    return memory;
  }

  private static void put(MatrixType type, MemorySegment to, long i, float value) {
    switch (type) {
      case HALF -> to.setAtIndex(JAVA_SHORT, i, Float.floatToFloat16(value));
      case BFLOAT16 ->
          to.setAtIndex(JAVA_SHORT, i, (short) (Float.floatToRawIntBits(value) >>> BFLOAT16_SHIFT));
      case FLOAT, COMPLEX_FLOAT -> to.setAtIndex(JAVA_FLOAT, i, value);
      case DOUBLE, COMPLEX_DOUBLE -> to.setAtIndex(JAVA_DOUBLE, i, value);
    }
  }

  private static double get(MatrixType type, MemorySegment from, long i) {
    return switch (type) {
      case HALF -> Float.float16ToFloat(from.getAtIndex(JAVA_SHORT, i));
      case BFLOAT16 -> Float.intBitsToFloat(from.getAtIndex(JAVA_SHORT, i) << BFLOAT16_SHIFT);
      case FLOAT, COMPLEX_FLOAT -> from.getAtIndex(JAVA_FLOAT, i);
      case DOUBLE, COMPLEX_DOUBLE -> from.getAtIndex(JAVA_DOUBLE, i);
    };
  }

  /** Multiplies on the device and holds each element against the reference. */
  void check(CudaDriver driver, long handle) {
    long onA = upload(driver, a);
    long onB = upload(driver, b);
    long onC = driver.memory().memAlloc(0, product.bytesOfC());
    driver.transfers().memsetD8Async(0, onC, (byte) 0, product.bytesOfC(), 0);
    driver.math().gemm(0, handle, product, onC, onA, onB);
    MemorySegment c = Arena.ofAuto().allocate(product.bytesOfC(), 16);
    driver.transfers().memcpyDtoHAsync(0, c, onC, 0);
    driver.streams().streamSynchronize(0, 0);
    for (long batch = 0; batch < product.batch(); batch++) {
      for (long i = 0; i < product.rows(); i++) {
        for (long j = 0; j < product.columns(); j++) {
          checkElement(c, batch, i, j);
        }
      }
    }
    driver.memory().memFree(0, onA);
    driver.memory().memFree(0, onB);
    driver.memory().memFree(0, onC);
  }

  private static long upload(CudaDriver driver, MemorySegment from) {
    long memory = driver.memory().memAlloc(0, from.byteSize());
    driver.transfers().memcpyHtoDAsync(0, memory, from, 0);
    return memory;
  }

  private static long place(Operand lies, long batch, long row, long column) {
    return batch * lies.stride()
        + (lies.transposed() ? row * lies.leading() + column : column * lies.leading() + row);
  }

  private void checkElement(MemorySegment c, long batch, long i, long j) {
    MatrixType type = product.type();
    int parts = type.isComplex() ? 2 : 1;
    double re = 0;
    double im = 0;
    for (long l = 0; l < product.inner(); l++) {
      long inA = place(product.a(), batch, i, l) * parts;
      long inB = place(product.b(), batch, l, j) * parts;
      double x = get(type, a, inA);
      double y = get(type, b, inB);
      double xi = parts == 2 ? get(type, a, inA + 1) : 0;
      double yi = parts == 2 ? get(type, b, inB + 1) : 0;
      re += x * y - xi * yi;
      im += x * yi + xi * y;
    }
    long at = place(product.c(), batch, i, j) * parts;
    // 300 and less: exact but for the 8 bits of bfloat16
    double rounding = type == MatrixType.BFLOAT16 ? 1 : 0;
    assertThat(get(type, c, at)).as("%s", product).isCloseTo(re, within(rounding));
    if (parts == 2) {
      assertThat(get(type, c, at + 1)).as("%s", product).isCloseTo(im, within(rounding));
    }
  }
}

package io.cuvette.array;

import static io.cuvette.array.ElementType.COMPLEX64;
import static io.cuvette.array.ElementType.FLOAT32;
import static io.cuvette.array.ElementType.FLOAT64;
import static io.cuvette.array.ElementType.INT32;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import io.cuvette.Cuda;
import io.cuvette.testkit.CudaTest;
import java.util.Arrays;
import java.util.List;

/** Products of matrices and vectors, as NumPy has them, on devices and on the host. */
class ProductsTest {
  private static final List<ElementType> TYPES =
      List.of(
          ElementType.FLOAT16,
          ElementType.BFLOAT16,
          FLOAT32,
          FLOAT64,
          COMPLEX64,
          ElementType.COMPLEX128);
  private static final int ROUNDS = 30;

  private static List<ArrayModule<? extends NdArray>> modules(Cuda cuda) {
    return List.of(CudaArrays.of(cuda), HostArrays.of(cuda));
  }

  /** A random view with small integers, whose products are exact. */
  private static RandomArrays.View small(
      RandomArrays random, ArrayModule<?> module, ElementType type, long... shape) {
    RandomArrays.View view = random.view(module, type, shape);
    try (HostArray values = HostArrays.of(module.cuda()).empty(type, shape)) {
      for (long[] at : Indices.of(shape)) {
        values.setComplex(
            new Complex(random.below(7) - 3, type.isComplex() ? random.below(7) - 3 : 0), at);
      }
      view.array().copyFrom(values);
    }
    return view;
  }

  @CudaTest
  void matmul_isThatOfTheReference(Cuda cuda) {
    RandomArrays random = new RandomArrays(5);
    for (ArrayModule<? extends NdArray> module : modules(cuda)) {
      for (ElementType type : TYPES) {
        for (int i = 0; i < ROUNDS; i++) {
          checkMatmul(module, random, type);
        }
      }
    }
  }

  private static void checkMatmul(ArrayModule<?> module, RandomArrays random, ElementType type) {
    long[] batch = random.shape(2, 3);
    long inner = 1 + random.below(6);
    boolean isRow = random.below(5) == 0;
    boolean isColumn = random.below(5) == 0;
    long[] left =
        isRow
            ? new long[] {inner}
            : LayoutViews.joined(some(random, batch), 1 + random.below(6), inner);
    long[] right =
        isColumn
            ? new long[] {inner}
            : LayoutViews.joined(some(random, batch), inner, 1 + random.below(6));
    try (RandomArrays.View a = small(random, module, type, left);
        RandomArrays.View b = small(random, module, type, right);
        NdArray product = a.array().matmul(b.array());
        HostArray x = a.array().toHost();
        HostArray y = b.array().toHost();
        HostArray z = product.toHost()) {
      HostArray rows = isRow ? x.expand(0) : x;
      HostArray columns = isColumn ? y.expand(1) : y;
      long[] common =
          Layout.broadcastShape(
              Arrays.copyOf(rows.shape(), rows.rank() - 2),
              Arrays.copyOf(columns.shape(), columns.rank() - 2));
      long m = rows.shape()[rows.rank() - 2];
      long n = columns.shape()[columns.rank() - 1];
      HostArray one = rows.broadcastTo(LayoutViews.joined(common, m, inner));
      HostArray other = columns.broadcastTo(LayoutViews.joined(common, inner, n));
      HostArray result = isColumn ? z.expand(z.rank()) : z;
      result = isRow ? result.expand(result.rank() - 1) : result;
      assertThat(result.shape()).isEqualTo(LayoutViews.joined(common, m, n));
      for (long[] at : Indices.of(result.shape())) {
        assertClose(type, result.getComplex(at), sum(one, other, at, inner), left, right);
      }
    }
  }

  /** Some of the last axes of a shape, of which some are 1. */
  private static long[] some(RandomArrays random, long[] batch) {
    long[] part = Arrays.copyOfRange(batch, random.below(batch.length + 1), batch.length);
    for (int i = 0; i < part.length; i++) {
      part[i] = random.below(3) == 0 ? 1 : part[i];
    }
    return part;
  }

  private static Complex sum(HostArray a, HostArray b, long[] at, long inner) {
    Complex sum = Complex.ZERO;
    long[] left = at.clone();
    long[] right = at.clone();
    for (long l = 0; l < inner; l++) {
      left[at.length - 1] = l;
      right[at.length - 2] = l;
      Complex product = ReferenceMath.times(a.getComplex(left), b.getComplex(right));
      sum = new Complex(sum.real() + product.real(), sum.imaginary() + product.imaginary());
    }
    return sum;
  }

  private static void assertClose(
      ElementType type, Complex is, Complex expected, long[] left, long[] right) {
    String what = "%s %s x %s".formatted(type, Arrays.toString(left), Arrays.toString(right));
    assertThat(is.real()).as(what).isCloseTo(expected.real(), within(0.0));
    assertThat(is.imaginary()).as(what).isCloseTo(expected.imaginary(), within(0.0));
  }

  @CudaTest
  void dot_isThatOfNumPy(Cuda cuda) {
    for (ArrayModule<? extends NdArray> xp : modules(cuda)) {
      try (NdArray a = xp.arange(FLOAT64, 0.0, 6, 1);
          NdArray b = xp.arange(FLOAT64, 0.0, 24, 1);
          NdArray square = a.dot(a);
          NdArray matrix = a.reshape(2, 3).dot(a.reshape(3, 2));
          NdArray vector = a.reshape(2, 3).dot(a.slice(Range.to(3)));
          NdArray tensor = a.reshape(2, 3).dot(b.reshape(2, 3, 4));
          NdArray sums = b.reshape(2, 4, 3).dot(a.slice(Range.to(3)))) {
        assertThat(square.rank()).isZero();
        assertThat(square.reshape(1).toArray(double[].class)).containsExactly(55);
        assertThat(matrix.toArray(double[][].class))
            .isDeepEqualTo(new double[][] {{10, 13}, {28, 40}});
        assertThat(vector.toArray(double[].class)).containsExactly(5, 14);
        assertThat(tensor.toArray(double[][][].class))
            .isDeepEqualTo(
                new double[][][] {
                  {{20, 23, 26, 29}, {56, 59, 62, 65}}, {{56, 68, 80, 92}, {200, 212, 224, 236}}
                });
        assertThat(sums.toArray(double[][].class))
            .isDeepEqualTo(new double[][] {{5, 14, 23, 32}, {41, 50, 59, 68}});
      }
    }
  }

  @CudaTest
  void noElements_giveZeros(Cuda cuda) {
    for (ArrayModule<? extends NdArray> xp : modules(cuda)) {
      try (NdArray a = xp.empty(FLOAT32, 2, 0);
          NdArray b = xp.empty(FLOAT32, 0, 3);
          NdArray zeros = a.matmul(b);
          NdArray c = xp.zeros(FLOAT32, 3, 2);
          NdArray none = b.matmul(c)) {
        assertThat(zeros.toArray(float[][].class)).isDeepEqualTo(new float[2][3]);
        assertThat(none.shape()).containsExactly(0, 2);
      }
    }
  }

  @CudaTest
  void out_isFilledByRowsOrByColumns(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    float[][] expected = {{10, 13}, {28, 40}};
    try (CudaArray a = cp.arange(FLOAT32, 6);
        CudaArray rows = cp.empty(FLOAT32, 2, 2);
        CudaArray columns = cp.empty(FLOAT32, Order.F, 2, 2);
        CudaArray wide = cp.zeros(FLOAT32, 4, 4)) {
      CudaArray left = a.reshape(2, 3);
      CudaArray right = a.reshape(3, 2);
      for (CudaArray out : List.of(rows, columns, wide.slice(Range.from(2), Range.of(1, 3)))) {
        assertThat(left.matmul(right, out)).isSameAs(out);
        assertThat(out.toArray(float[][].class)).isDeepEqualTo(expected);
      }
      assertThatIllegalArgumentException()
          .isThrownBy(() -> left.matmul(right, a.slice(Range.to(4)).reshape(2, 2)))
          .withMessageContaining("has bytes in common");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> left.matmul(right, wide))
          .withMessage("out: shape [4, 4] (expected: [2, 2])");
      CudaArray steps = wide.slice(Range.all().step(2), Range.all().step(2));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> left.matmul(right, steps))
          .withMessageContaining("(expected: rows or columns without gaps in them)");
    }
  }

  @CudaTest
  void operandsThatDoNotFit_areRefused(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    try (CudaArray a = cp.zeros(FLOAT32, 2, 3);
        CudaArray numbers = cp.zeros(INT32, 3, 2);
        CudaArray one = cp.zeros(FLOAT32);
        HostArray host = a.toHost()) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> a.matmul(a))
          .withMessage(
              "product of shapes [2, 3] and [2, 3]: 3 columns, 2 rows (expected: the same)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> numbers.matmul(numbers.transpose()))
          .withMessageContaining("(expected: a floating or complex type; convert one with asType)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> a.matmul(one))
          .withMessageContaining("(expected: at least one axis each)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> a.matmul(host.transpose()))
          .withMessageStartingWith("other: view of a HostArray");
    }
  }

  @CudaTest
  void productOfTooManyAxes_isRefused_andNothingIsLeft(Cuda cuda) {
    long[] ones = new long[18];
    Arrays.fill(ones, 1);
    try (CudaArray a = CudaArrays.of(cuda).ones(FLOAT32, ones)) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> a.dot(a))
          .withMessage("shape: 34 axes (expected: at most 32)");
    }
    assertThat(cuda.defaultMemoryPool().stats(cuda.device(0)).usedBytes()).isZero();
  }
}

package io.cuvette.array;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import io.cuvette.Cuda;
import io.cuvette.testkit.CudaTest;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/** Reductions of each type along any axes give what the reference gives. */
class ReductionsTest {
  private static final int ROUNDS = 6;

  @CudaTest
  void reductions_areThoseOfTheReference(Cuda cuda) {
    RandomArrays random = new RandomArrays(4);
    for (ArrayModule<? extends NdArray> module :
        List.of(CudaArrays.of(cuda), HostArrays.of(cuda))) {
      for (Reduction reduction : Reduction.values()) {
        for (ElementType type : ElementType.values()) {
          if (!reduction.isOfOneElement() || !type.isComplex()) {
            for (int i = 0; i < ROUNDS; i++) {
              check(module, random, reduction, type);
            }
          }
        }
      }
    }
  }

  private static void check(
      ArrayModule<?> module, RandomArrays random, Reduction reduction, ElementType type) {
    long[] shape = random.shape(4, 7);
    int[] axes = IntStream.range(0, shape.length).filter(_ -> random.below(2) == 0).toArray();
    try (RandomArrays.View view = random.view(module, type, shape);
        NdArray result = view.array().reduce(reduction, axes);
        HostArray in = view.array().toHost();
        HostArray out = result.toHost()) {
      assertThat(out.type()).isEqualTo(reduction.resultType(type));
      int[] reduced = axes.length == 0 ? IntStream.range(0, shape.length).toArray() : axes;
      int[] kept =
          IntStream.range(0, shape.length)
              .filter(axis -> Arrays.stream(reduced).noneMatch(each -> each == axis))
              .toArray();
      assertThat(out.shape()).isEqualTo(part(shape, kept));
      for (long[] at : Indices.of(out.shape())) {
        List<Object> elements = new ArrayList<>();
        for (long[] rest : Indices.of(part(shape, reduced))) {
          long[] index = new long[shape.length];
          IntStream.range(0, kept.length).forEach(i -> index[kept[i]] = at[i]);
          IntStream.range(0, reduced.length).forEach(i -> index[reduced[i]] = rest[i]);
          elements.add(ReferenceMath.element(in, index));
        }
        assertIs(reduction, type, elements, ReferenceMath.element(out, at));
      }
    }
  }

  private static long[] part(long[] shape, int[] axes) {
    return Arrays.stream(axes).mapToLong(axis -> shape[axis]).toArray();
  }

  private static void assertIs(
      Reduction reduction, ElementType type, List<Object> elements, Object actual) {
    String what = "%s of %s %s".formatted(reduction, type, elements);
    switch (reduction) {
      case ANY_TRUE, ALL_TRUE -> {
        List<Boolean> truths = elements.stream().map(ReductionsTest::isTrue).toList();
        boolean is =
            reduction == Reduction.ANY_TRUE ? truths.contains(true) : !truths.contains(false);
        assertThat(actual).as(what).isEqualTo(is ? BigInteger.ONE : BigInteger.ZERO);
      }
      case ARGMIN, ARGMAX ->
          assertThat(actual).as(what).isEqualTo(BigInteger.valueOf(best(reduction, elements)));
      case MIN, MAX -> {
        Object expected = elements.get(best(reduction, elements));
        assertThat(isSame(actual, expected)).as("%s: %s", what, actual).isTrue();
      }
      default -> assertSum(reduction, type, elements, actual, what);
    }
  }

  private static boolean isTrue(Object element) {
    Complex value = ReferenceMath.complex(element);
    return value.real() != 0 || value.imaginary() != 0;
  }

  private static boolean isSame(Object one, Object other) {
    return one.equals(other)
        || ReferenceMath.complex(one).real() == ReferenceMath.complex(other).real();
  }

  private static int best(Reduction reduction, List<Object> elements) {
    boolean isLeast = reduction == Reduction.MIN || reduction == Reduction.ARGMIN;
    int best = 0;
    for (int i = 1; i < elements.size(); i++) {
      if (isBetter(elements.get(i), elements.get(best), isLeast)) {
        best = i;
      }
    }
    return best;
  }

  private static boolean isBetter(Object one, Object other, boolean isLeast) {
    if (one instanceof BigInteger x && other instanceof BigInteger y) {
      return isLeast ? x.compareTo(y) < 0 : x.compareTo(y) > 0;
    }
    double x = ((Complex) one).real();
    double y = ((Complex) other).real();
    return !Double.isNaN(y) && (Double.isNaN(x) || (isLeast ? x < y : x > y));
  }

  private static void assertSum(
      Reduction reduction, ElementType type, List<Object> elements, Object actual, String what) {
    ElementType result = reduction.resultType(type);
    if (result.isInteger()) {
      BigInteger exact =
          elements.stream()
              .map(BigInteger.class::cast)
              .reduce(
                  reduction == Reduction.SUM ? BigInteger.ZERO : BigInteger.ONE,
                  reduction == Reduction.SUM ? BigInteger::add : BigInteger::multiply);
      assertThat(actual).as(what).isEqualTo(ReferenceMath.stored(exact, result));
      return;
    }
    Complex sum = reduction == Reduction.PROD ? Complex.ONE : Complex.ZERO;
    double size = reduction == Reduction.PROD ? 1 : 0;
    for (Object each : elements) {
      Complex value = ReferenceMath.complex(each);
      double absolute = Math.hypot(value.real(), value.imaginary());
      if (reduction == Reduction.PROD) {
        sum = ReferenceMath.times(sum, value);
        size *= absolute;
      } else {
        sum = new Complex(sum.real() + value.real(), sum.imaginary() + value.imaginary());
        size += absolute;
      }
    }
    double divisor = reduction == Reduction.MEAN ? elements.size() : 1;
    if (!(size < 1e30 && size > 1e-30)
        || (result == ElementType.FLOAT16 && size / divisor > 65504)) {
      return; // what overflows, or is special, differs by the order
    }
    double unit =
        switch (result.realType()) {
          case FLOAT16 -> 0x1p-10;
          case BFLOAT16 -> 0x1p-7;
          case FLOAT32 -> 0x1p-23;
          default -> 0x1p-52;
        };
    double rounding = 2 * (elements.size() + 1) * unit * size / divisor + 0x1p-24 * unit;
    Complex is = ReferenceMath.complex(actual);
    assertThat(is.real())
        .as(what)
        .isCloseTo(sum.real() / divisor, within(rounding + least(result)));
    assertThat(is.imaginary())
        .as(what)
        .isCloseTo(sum.imaginary() / divisor, within(rounding + least(result)));
  }

  private static double least(ElementType type) {
    return type == ElementType.FLOAT16 ? 0x1p-24 : 0;
  }

  @CudaTest
  void manyElements_areReducedInTwoPasses_rowsAndColumns(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    try (CudaArray numbers = cp.arange(ElementType.INT64, 1_000_000);
        CudaArray sum = numbers.reduce(Reduction.SUM);
        CudaArray best = numbers.slice(Range.reversed()).reduce(Reduction.ARGMAX);
        CudaArray mean = numbers.reduce(Reduction.MEAN);
        CudaArray columns = numbers.reshape(10_000, 100).reduce(Reduction.SUM, 0);
        CudaArray least = numbers.reshape(10_000, 100).reduce(Reduction.ARGMIN, -2);
        CudaArray rows = numbers.reshape(100, 10_000).reduce(Reduction.MAX, 1);
        HostArray total = sum.toHost()) {
      assertThat(total.getLong()).isEqualTo(999_999L * 500_000);
      assertThat(best.reshape(1).toArray(long[].class)[0]).isZero();
      assertThat(mean.reshape(1).toArray(double[].class)[0]).isEqualTo(499_999.5);
      long[] all = columns.toArray(long[].class);
      long[] maxima = rows.toArray(long[].class);
      for (int i = 0; i < 100; i++) {
        assertThat(all[i]).isEqualTo(10_000L * i + 100L * 9_999 * 10_000 / 2);
        assertThat(maxima[i]).isEqualTo(10_000L * i + 9_999);
      }
      assertThat(least.toArray(long[].class)).containsOnly(0);
    }
  }

  @CudaTest
  void noElements_haveASum_andNoLeast(Cuda cuda) {
    for (ArrayModule<? extends NdArray> module :
        List.of(CudaArrays.of(cuda), HostArrays.of(cuda))) {
      try (NdArray none = module.empty(ElementType.FLOAT32, 3, 0);
          NdArray sums = none.sum(1);
          NdArray products = none.reduce(Reduction.PROD, 1);
          NdArray means = none.mean(1);
          NdArray ofNone = none.min(0);
          NdArray nothing = module.empty(ElementType.FLOAT32, 0, 0);
          NdArray leastOfNothing = nothing.min(0)) {
        assertThat(sums.toArray(float[].class)).containsExactly(0, 0, 0);
        assertThat(products.toArray(float[].class)).containsExactly(1, 1, 1);
        assertThat(means.toArray(float[].class)).containsOnly(Float.NaN);
        assertThat(ofNone.shape()).containsExactly(0);
        assertThat(leastOfNothing.shape()).containsExactly(0);
        assertThatIllegalArgumentException()
            .isThrownBy(() -> none.min(1))
            .withMessage("MIN: shape [3, 0], axes [1] (expected: at least one element)");
        assertThatIllegalArgumentException()
            .isThrownBy(() -> none.sum(0, -2))
            .withMessage("axes: [0, -2] (expected: each once)");
      }
    }
  }
}

package io.cuvette.array;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import io.cuvette.Cuda;
import io.cuvette.testkit.CudaTest;
import java.math.BigInteger;
import java.util.Arrays;
import java.util.List;

/** Each operation on each type gives what the reference gives, on devices and on the host. */
class OperationsTest {
  private static final int ROUNDS = 4;

  private static List<ArrayModule<? extends NdArray>> modules(Cuda cuda) {
    return List.of(CudaArrays.of(cuda), HostArrays.of(cuda));
  }

  @CudaTest
  void functionsOfOneElement_areThoseOfTheReference(Cuda cuda) {
    RandomArrays random = new RandomArrays(1);
    for (ArrayModule<? extends NdArray> module : modules(cuda)) {
      for (UnaryOperation operation : UnaryOperation.values()) {
        for (ElementType type : ElementType.values()) {
          if (isFor(() -> operation.resultType(type))) {
            for (int i = 0; i < ROUNDS; i++) {
              check(module, random, operation, type);
            }
          }
        }
      }
    }
  }

  private static void check(
      ArrayModule<?> module, RandomArrays random, UnaryOperation operation, ElementType type) {
    try (RandomArrays.View view = random.view(module, type, random.shape(3, 9));
        NdArray result = view.array().map(operation);
        HostArray in = view.array().toHost();
        HostArray computed = in.asType(operation.computedType(type));
        HostArray out = result.toHost()) {
      assertThat(out.type()).isEqualTo(operation.resultType(type));
      assertThat(out.shape()).isEqualTo(in.shape());
      for (long[] at : Indices.of(in.shape())) {
        Object x = ReferenceMath.element(computed, at);
        assertIs(
            out,
            at,
            ReferenceMath.unary(operation, x, computed.type()),
            isRounded(operation) || type.isComplex(),
            "%s(%s %s)".formatted(operation, type, x));
      }
    }
  }

  private static boolean isRounded(UnaryOperation operation) {
    return switch (operation) {
      case SQRT, FLOOR, CEIL, RINT, TRUNC, IS_NAN, IS_INFINITE, IS_FINITE -> false;
      default -> operation.isRealFunction() || operation == UnaryOperation.ABS;
    };
  }

  @CudaTest
  void functionsOfTwoElements_areThoseOfTheReference(Cuda cuda) {
    RandomArrays random = new RandomArrays(2);
    for (ArrayModule<? extends NdArray> module : modules(cuda)) {
      for (BinaryOperation operation : BinaryOperation.values()) {
        for (ElementType type : ElementType.values()) {
          if (isFor(() -> operation.resultType(type, type))) {
            for (int i = 0; i < ROUNDS; i++) {
              ElementType other =
                  i > 0 ? type : ElementType.values()[random.below(ElementType.values().length)];
              if (isFor(() -> operation.resultType(type, other))) {
                check(module, random, operation, type, other);
              }
            }
          }
        }
      }
    }
  }

  private static void check(
      ArrayModule<?> module,
      RandomArrays random,
      BinaryOperation operation,
      ElementType one,
      ElementType other) {
    long[] shape = random.shape(3, 9);
    long[] part = Arrays.copyOfRange(shape, random.below(shape.length + 1), shape.length);
    for (int i = 0; i < part.length; i++) {
      part[i] = random.below(3) == 0 ? 1 : part[i];
    }
    ElementType computed = operation.computedType(one, other);
    try (RandomArrays.View a = random.view(module, one, shape);
        RandomArrays.View b = random.view(module, other, part);
        NdArray result = a.array().combine(operation, b.array());
        HostArray x = a.array().toHost();
        HostArray y = b.array().toHost();
        HostArray left = x.asType(computed);
        HostArray right = y.asType(computed);
        HostArray out = result.toHost()) {
      assertThat(out.type()).isEqualTo(operation.resultType(one, other));
      assertThat(out.shape()).isEqualTo(shape);
      HostArray all = right.broadcastTo(shape);
      for (long[] at : Indices.of(shape)) {
        Object v = ReferenceMath.element(left, at);
        Object w = ReferenceMath.element(all, at);
        assertIs(
            out,
            at,
            ReferenceMath.binary(operation, v, w, computed),
            operation.isRealFunction()
                || operation == BinaryOperation.POWER
                || computed.isComplex(),
            "%s(%s %s, %s %s)".formatted(operation, one, v, other, w));
      }
    }
  }

  /** That an element is what is expected, but for rounding: of 4 units in the last place. */
  private static void assertIs(
      HostArray out, long[] at, Object exact, boolean isRounded, String what) {
    ElementType type = out.type();
    Object actual = ReferenceMath.element(out, at);
    Object expected = ReferenceMath.stored(exact, type);
    if (expected instanceof BigInteger) {
      assertThat(actual).as(what).isEqualTo(expected);
      return;
    }
    Complex is = (Complex) actual;
    Complex should = (Complex) expected;
    double scale = Math.hypot(should.real(), should.imaginary());
    if (!isClose(is.real(), should.real(), scale, type, isRounded)
        || !isClose(is.imaginary(), should.imaginary(), scale, type, isRounded)) {
      fail("%s = %s (expected: %s)", what, actual, expected);
    }
  }

  private static boolean isClose(
      double is, double should, double scale, ElementType type, boolean isRounded) {
    if (!isRounded || Double.compare(is, should) == 0) {
      return Double.compare(is, should) == 0 || is == should;
    }
    boolean isOfComplex = type.isComplex();
    if (isOfComplex && !(scale < 1e30 && scale > 1e-30)) {
      return true; // what overflows in between differs by the method
    }
    if (Double.isNaN(should) || Double.isInfinite(should)) {
      double largest = type.realType() == ElementType.FLOAT16 ? 65504 : Float.MAX_VALUE * 0.99;
      return Double.compare(is, should) == 0
          || (Double.isInfinite(should) && Math.abs(is) >= largest);
    }
    if (Double.isInfinite(is)) { // the last values round to it
      return Double.compare(is, (1 + 0x1p-50) * should) == 0;
    }
    double bits =
        switch (type.realType()) {
          case FLOAT16 -> 0x1p-10;
          case BFLOAT16 -> 0x1p-7;
          case FLOAT32 -> 0x1p-23;
          default -> 0x1p-52;
        };
    double least =
        switch (type.realType()) {
          case FLOAT16 -> 0x1p-24;
          case BFLOAT16 -> 0x1p-133;
          case FLOAT32 -> 0x1p-149;
          default -> 0x1p-1074;
        };
    return Math.abs(is - should) <= 4 * Math.max(bits * scale, least);
  }

  private static boolean isFor(Runnable check) {
    try {
      check.run();
      return true;
    } catch (IllegalArgumentException _) {
      return false;
    }
  }

  @CudaTest
  void conversions_areThoseOfTheHost(Cuda cuda) {
    RandomArrays random = new RandomArrays(3);
    CudaArrays module = CudaArrays.of(cuda);
    for (ElementType from : ElementType.values()) {
      for (ElementType to : ElementType.values()) {
        for (int i = 0; i < ROUNDS; i++) {
          try (RandomArrays.View view = random.view(module, from, random.shape(3, 9));
              NdArray converted = view.array().asType(to);
              HostArray out = converted.toHost();
              HostArray in = view.array().toHost();
              HostArray expected = in.asType(to)) {
            for (long[] at : Indices.of(in.shape())) {
              assertThat(ReferenceMath.element(out, at))
                  .as("%s %s to %s", from, ReferenceMath.element(in, at), to)
                  .isEqualTo(ReferenceMath.element(expected, at));
            }
          }
        }
      }
    }
  }
}

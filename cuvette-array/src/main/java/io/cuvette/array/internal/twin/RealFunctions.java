package io.cuvette.array.internal.twin;

import io.cuvette.array.BinaryOperation;
import io.cuvette.array.UnaryOperation;
import io.cuvette.array.internal.twin.ElementTwin.LaneFunction;
import java.util.function.DoublePredicate;
import java.util.function.DoubleUnaryOperator;

/**
 * The operations on real numbers, as functions.cuh has them. What is computed in float there is
 * computed in double here and rounded, which gives the same for all that is correctly rounded.
 * Stateless.
 */
final class RealFunctions {
  private static final double LN2 = Math.log(2);

  private RealFunctions() {}

  static LaneFunction of(UnaryOperation operation) {
    return switch (operation) {
      case IS_NAN -> test(Double::isNaN);
      case IS_INFINITE -> test(Double::isInfinite);
      case IS_FINITE -> test(Double::isFinite);
      default -> {
        DoubleUnaryOperator function = function(operation);
        yield (out, in, n) -> {
          for (int i = 0; i < n; i++) {
            out.re[i] = function.applyAsDouble(in[0].re[i]);
          }
        };
      }
    };
  }

  private static LaneFunction test(DoublePredicate predicate) {
    return (out, in, n) -> {
      for (int i = 0; i < n; i++) {
        out.bits[i] = predicate.test(in[0].re[i]) ? 1 : 0;
      }
    };
  }

  private static DoubleUnaryOperator function(UnaryOperation operation) {
    return switch (operation) {
      case NEGATE -> x -> -x;
      case ABS -> Math::abs;
      case SQUARE -> x -> x * x;
      case SIGN -> x -> x > 0 ? 1 : x < 0 ? -1 : x;
      case SQRT -> Math::sqrt;
      case CBRT -> Math::cbrt;
      case EXP -> Math::exp;
      case EXP2 -> x -> Math.pow(2, x);
      case EXPM1 -> Math::expm1;
      case LOG -> Math::log;
      case LOG2 -> RealFunctions::log2;
      case LOG10 -> Math::log10;
      case LOG1P -> Math::log1p;
      case SIN -> Math::sin;
      case COS -> Math::cos;
      case TAN -> Math::tan;
      case ASIN -> Math::asin;
      case ACOS -> Math::acos;
      case ATAN -> Math::atan;
      case SINH -> Math::sinh;
      case COSH -> Math::cosh;
      case TANH -> Math::tanh;
      case FLOOR -> Math::floor;
      case CEIL -> Math::ceil;
      case RINT -> Math::rint;
      case TRUNC -> x -> Math.copySign(Math.floor(Math.abs(x)), x);
      default -> throw new AssertionError(operation);
    };
  }

  /** Exact for powers of two, and near 1, where the logarithm is near 0. */
  private static double log2(double x) {
    if (!(x > 0) || Double.isInfinite(x)) {
      return Math.log(x);
    }
    int exponent = Math.getExponent(x);
    if (exponent < Double.MIN_EXPONENT) {
      return log2(x * 0x1p54) - 54;
    }
    double mantissa = Math.scalb(x, -exponent);
    if (mantissa > Math.sqrt(2)) {
      mantissa /= 2;
      exponent++;
    }
    return exponent + Math.log(mantissa) / LN2;
  }

  static LaneFunction of(BinaryOperation operation) {
    return operation.isComparison()
        ? (out, in, n) -> {
          for (int i = 0; i < n; i++) {
            out.bits[i] = compare(operation, in[0].re[i], in[1].re[i]) ? 1 : 0;
          }
        }
        : (out, in, n) -> {
          boolean isSingle = Lane.isSingle(in[0].type);
          for (int i = 0; i < n; i++) {
            out.re[i] = apply(operation, in[0].re[i], in[1].re[i], isSingle);
          }
        };
  }

  private static boolean compare(BinaryOperation operation, double x, double y) {
    return switch (operation) {
      case EQUAL -> x == y;
      case NOT_EQUAL -> x != y;
      case LESS -> x < y;
      case LESS_EQUAL -> x <= y;
      case GREATER -> x > y;
      case GREATER_EQUAL -> x >= y;
      default -> throw new AssertionError(operation);
    };
  }

  private static double apply(BinaryOperation operation, double x, double y, boolean isSingle) {
    return switch (operation) {
      case ADD -> x + y;
      case SUBTRACT -> x - y;
      case MULTIPLY -> x * y;
      case DIVIDE -> x / y;
      case FLOOR_DIVIDE -> Math.floor(isSingle ? (float) (x / y) : x / y);
      case REMAINDER -> remainder(x, y, isSingle);
      case POWER -> power(x, y);
      case MINIMUM -> Double.isNaN(x) ? x : Double.isNaN(y) ? y : y < x ? y : x;
      case MAXIMUM -> Double.isNaN(x) ? x : Double.isNaN(y) ? y : y > x ? y : x;
      case ATAN2 -> Math.atan2(x, y);
      case HYPOT -> Math.hypot(x, y);
      default -> throw new AssertionError(operation);
    };
  }

  /** As in C, where 1 is the power of 1 even of what is no number, and -1 has infinite ones. */
  private static double power(double x, double y) {
    return x == 1 || (x == -1 && Double.isInfinite(y)) ? 1 : Math.pow(x, y);
  }

  private static double remainder(double x, double y, boolean isSingle) {
    double r = x % y;
    if (r == 0) {
      return Math.copySign(0, y);
    }
    double result = (r < 0) != (y < 0) ? r + y : r;
    return isSingle ? (float) result : result;
  }
}

package io.cuvette.array;

import java.math.BigInteger;

/**
 * What the operations are, one element at a time: integers with BigInteger, all else in double.
 * Stateless.
 */
final class ReferenceMath {
  private ReferenceMath() {}

  /** An element, exactly: of an integer type as a BigInteger, else as a Complex. */
  static Object element(HostArray a, long... index) {
    ElementType type = a.type();
    if (type == ElementType.UINT64) {
      return new BigInteger(Long.toUnsignedString(a.getLong(index)));
    }
    return type.isInteger() || type == ElementType.BOOLEAN
        ? BigInteger.valueOf(a.getLong(index))
        : a.getComplex(index);
  }

  /** The value that an element has once it is stored with a type. */
  static Object stored(Object value, ElementType type) {
    if (type == ElementType.BOOLEAN) {
      return value;
    }
    if (type.isInteger()) {
      BigInteger range = BigInteger.TWO.pow(8 * type.bytes());
      BigInteger low = ((BigInteger) value).mod(range);
      boolean isNegative = !type.isUnsigned() && low.compareTo(range.shiftRight(1)) >= 0;
      return isNegative ? low.subtract(range) : low;
    }
    Complex c = complex(value);
    return new Complex(rounded(c.real(), type), rounded(c.imaginary(), type));
  }

  static double rounded(double value, ElementType type) {
    return switch (type) {
      case FLOAT16 -> Float.float16ToFloat(Float.floatToFloat16((float) value));
      case BFLOAT16 -> {
        int bits = Float.floatToRawIntBits((float) value);
        float nearest = Float.intBitsToFloat((bits + 0x7fff + (bits >>> 16 & 1)) & 0xffff0000);
        yield Float.isNaN((float) value) ? Double.NaN : nearest;
      }
      case FLOAT32, COMPLEX64 -> (float) value;
      default -> value;
    };
  }

  static Complex complex(Object value) {
    return value instanceof BigInteger integer
        ? new Complex(integer.doubleValue(), 0)
        : (Complex) value;
  }

  static Object unary(UnaryOperation operation, Object value, ElementType type) {
    if (value instanceof BigInteger x && !operation.isRealFunction()) {
      return switch (operation) {
        case NEGATE -> x.negate();
        case ABS -> x.abs();
        case SQUARE -> x.multiply(x);
        case SIGN -> BigInteger.valueOf(x.signum());
        case BIT_NOT -> type == ElementType.BOOLEAN ? BigInteger.ONE.subtract(x) : x.not();
        default -> throw new AssertionError(operation);
      };
    }
    Complex c = complex(value);
    double x = c.real();
    return switch (operation) {
      case NEGATE -> new Complex(-x, -c.imaginary());
      case ABS -> new Complex(type.isComplex() ? Math.hypot(x, c.imaginary()) : Math.abs(x), 0);
      case SQUARE -> type.isComplex() ? times(c, c) : new Complex(x * x, 0);
      case SIGN -> new Complex(Math.signum(x), 0);
      case CONJUGATE -> new Complex(x, -c.imaginary());
      case REAL -> new Complex(x, 0);
      case IMAG -> new Complex(c.imaginary(), 0);
      case IS_NAN -> truth(Double.isNaN(x));
      case IS_INFINITE -> truth(Double.isInfinite(x));
      case IS_FINITE -> truth(Double.isFinite(x));
      default -> new Complex(real(operation, x), 0);
    };
  }

  private static double real(UnaryOperation operation, double x) {
    return switch (operation) {
      case SQRT -> StrictMath.sqrt(x);
      case CBRT -> StrictMath.cbrt(x);
      case EXP -> StrictMath.exp(x);
      case EXP2 -> StrictMath.pow(2, x);
      case EXPM1 -> StrictMath.expm1(x);
      case LOG -> StrictMath.log(x);
      case LOG2 -> x == 0.5 ? -1 : StrictMath.log(x) / StrictMath.log(2);
      case LOG10 -> StrictMath.log10(x);
      case LOG1P -> StrictMath.log1p(x);
      case SIN -> StrictMath.sin(x);
      case COS -> StrictMath.cos(x);
      case TAN -> StrictMath.tan(x);
      case ASIN -> StrictMath.asin(x);
      case ACOS -> StrictMath.acos(x);
      case ATAN -> StrictMath.atan(x);
      case SINH -> StrictMath.sinh(x);
      case COSH -> StrictMath.cosh(x);
      case TANH -> StrictMath.tanh(x);
      case FLOOR -> StrictMath.floor(x);
      case CEIL -> StrictMath.ceil(x);
      case RINT -> StrictMath.rint(x);
      case TRUNC -> x < 0 ? StrictMath.ceil(x) : StrictMath.floor(x);
      default -> throw new AssertionError(operation);
    };
  }

  private static BigInteger truth(boolean value) {
    return value ? BigInteger.ONE : BigInteger.ZERO;
  }

  static Complex times(Complex x, Complex y) {
    return new Complex(
        x.real() * y.real() - x.imaginary() * y.imaginary(),
        x.real() * y.imaginary() + x.imaginary() * y.real());
  }

  static Object binary(BinaryOperation operation, Object one, Object other, ElementType type) {
    if (one instanceof BigInteger x && other instanceof BigInteger y) {
      return exact(operation, x, y, type);
    }
    Complex a = complex(one);
    Complex b = complex(other);
    return switch (operation) {
      case ADD -> new Complex(a.real() + b.real(), a.imaginary() + b.imaginary());
      case SUBTRACT -> new Complex(a.real() - b.real(), a.imaginary() - b.imaginary());
      case MULTIPLY -> type.isComplex() ? times(a, b) : new Complex(a.real() * b.real(), 0);
      case DIVIDE -> type.isComplex() ? quotient(a, b) : new Complex(a.real() / b.real(), 0);
      case EQUAL -> truth(a.real() == b.real() && a.imaginary() == b.imaginary());
      case NOT_EQUAL -> truth(a.real() != b.real() || a.imaginary() != b.imaginary());
      default -> real(operation, a.real(), b.real(), type);
    };
  }

  private static Complex quotient(Complex a, Complex b) {
    double size = b.real() * b.real() + b.imaginary() * b.imaginary();
    Complex product = times(a, new Complex(b.real(), -b.imaginary()));
    return new Complex(product.real() / size, product.imaginary() / size);
  }

  private static Object real(BinaryOperation operation, double x, double y, ElementType type) {
    boolean isNan = Double.isNaN(x) || Double.isNaN(y);
    return switch (operation) {
      case LESS -> truth(x < y);
      case LESS_EQUAL -> truth(x <= y);
      case GREATER -> truth(x > y);
      case GREATER_EQUAL -> truth(x >= y);
      case FLOOR_DIVIDE ->
          new Complex(Math.floor(type == ElementType.FLOAT64 ? x / y : (float) (x / y)), 0);
      case REMAINDER -> {
        double r = x % y;
        yield new Complex(
            Double.isNaN(r) ? r : r != 0 && r < 0 != y < 0 ? r + y : Math.copySign(r, y), 0);
      }
      case POWER -> // C's, where Java has NaN for the two
          new Complex(
              x == 1 || (Math.abs(x) == 1 && Double.isInfinite(y)) ? 1 : StrictMath.pow(x, y), 0);
      case MINIMUM -> new Complex(isNan ? Double.NaN : Math.min(x, y), 0);
      case MAXIMUM -> new Complex(isNan ? Double.NaN : Math.max(x, y), 0);
      case ATAN2 -> new Complex(StrictMath.atan2(x, y), 0);
      case HYPOT -> new Complex(StrictMath.hypot(x, y), 0);
      default -> throw new AssertionError(operation);
    };
  }

  private static Object exact(
      BinaryOperation operation, BigInteger x, BigInteger y, ElementType type) {
    boolean isBoolean = type == ElementType.BOOLEAN;
    return switch (operation) {
      case ADD -> isBoolean ? x.or(y) : x.add(y);
      case SUBTRACT -> x.subtract(y);
      case MULTIPLY -> x.multiply(y);
      case FLOOR_DIVIDE -> y.signum() == 0 ? y : floor(x, y);
      case REMAINDER -> y.signum() == 0 ? y : x.subtract(floor(x, y).multiply(y));
      case POWER -> power(x, y, type);
      case MINIMUM -> x.min(y);
      case MAXIMUM -> x.max(y);
      case EQUAL -> truth(x.equals(y));
      case NOT_EQUAL -> truth(!x.equals(y));
      case LESS -> truth(x.compareTo(y) < 0);
      case LESS_EQUAL -> truth(x.compareTo(y) <= 0);
      case GREATER -> truth(x.compareTo(y) > 0);
      case GREATER_EQUAL -> truth(x.compareTo(y) >= 0);
      case BIT_AND -> x.and(y);
      case BIT_OR -> x.or(y);
      case BIT_XOR -> x.xor(y);
      default -> throw new AssertionError(operation);
    };
  }

  private static BigInteger floor(BigInteger x, BigInteger y) {
    BigInteger[] parts = x.divideAndRemainder(y);
    boolean isBelow = parts[1].signum() != 0 && parts[1].signum() != y.signum();
    return isBelow ? parts[0].subtract(BigInteger.ONE) : parts[0];
  }

  private static BigInteger power(BigInteger x, BigInteger y, ElementType type) {
    if (y.signum() >= 0) {
      return x.modPow(y, BigInteger.TWO.pow(8 * type.bytes()));
    }
    boolean isUnit = x.abs().equals(BigInteger.ONE);
    return isUnit ? (y.testBit(0) ? x : BigInteger.ONE) : BigInteger.ZERO;
  }
}

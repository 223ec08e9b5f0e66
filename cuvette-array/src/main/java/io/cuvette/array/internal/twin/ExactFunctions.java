package io.cuvette.array.internal.twin;

import io.cuvette.array.BinaryOperation;
import io.cuvette.array.ElementType;
import io.cuvette.array.UnaryOperation;
import io.cuvette.array.internal.twin.ElementTwin.LaneFunction;

/** The operations on BOOLEAN and integers, as functions.cuh has them. Stateless. */
final class ExactFunctions {
  private ExactFunctions() {}

  static LaneFunction of(UnaryOperation operation) {
    return (out, in, n) -> {
      boolean isBoolean = out.type == ElementType.BOOLEAN;
      for (int i = 0; i < n; i++) {
        long x = in[0].bits[i];
        out.bits[i] =
            switch (operation) {
              case NEGATE -> -x;
              case ABS -> in[0].type.isUnsigned() ? x : Math.abs(x);
              case SQUARE -> x * x;
              case SIGN -> in[0].type.isUnsigned() ? (x == 0 ? 0 : 1) : Long.signum(x);
              case BIT_NOT -> isBoolean ? 1 - x : ~x;
              default -> throw new AssertionError(operation);
            };
      }
    };
  }

  static LaneFunction of(BinaryOperation operation) {
    return (out, in, n) -> {
      boolean isUnsigned = in[0].type.isUnsigned();
      boolean isBoolean = in[0].type == ElementType.BOOLEAN;
      for (int i = 0; i < n; i++) {
        out.bits[i] = apply(operation, in[0].bits[i], in[1].bits[i], isUnsigned, isBoolean);
      }
    };
  }

  private static long apply(
      BinaryOperation operation, long x, long y, boolean isUnsigned, boolean isBoolean) {
    return switch (operation) {
      case ADD -> isBoolean ? x | y : x + y;
      case SUBTRACT -> x - y;
      case MULTIPLY -> x * y;
      case FLOOR_DIVIDE ->
          y == 0 ? 0 : isUnsigned ? Long.divideUnsigned(x, y) : Math.floorDiv(x, y);
      case REMAINDER ->
          y == 0 ? 0 : isUnsigned ? Long.remainderUnsigned(x, y) : Math.floorMod(x, y);
      case POWER -> power(x, y, isUnsigned);
      case MINIMUM -> compare(x, y, isUnsigned) > 0 ? y : x;
      case MAXIMUM -> compare(x, y, isUnsigned) < 0 ? y : x;
      case EQUAL -> x == y ? 1 : 0;
      case NOT_EQUAL -> x != y ? 1 : 0;
      case LESS -> compare(x, y, isUnsigned) < 0 ? 1 : 0;
      case LESS_EQUAL -> compare(x, y, isUnsigned) <= 0 ? 1 : 0;
      case GREATER -> compare(x, y, isUnsigned) > 0 ? 1 : 0;
      case GREATER_EQUAL -> compare(x, y, isUnsigned) >= 0 ? 1 : 0;
      case BIT_AND -> x & y;
      case BIT_OR -> x | y;
      case BIT_XOR -> x ^ y;
      case DIVIDE, ATAN2, HYPOT -> throw new AssertionError(operation);
    };
  }

  static int compare(long x, long y, boolean isUnsigned) {
    return isUnsigned ? Long.compareUnsigned(x, y) : Long.compare(x, y);
  }

  private static long power(long x, long y, boolean isUnsigned) {
    if (y < 0 && !isUnsigned) {
      return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
    }
    long result = 1;
    long base = x;
    for (long e = y; e != 0; e >>>= 1) {
      if ((e & 1) == 1) {
        result *= base;
      }
      base *= base;
    }
    return result;
  }
}

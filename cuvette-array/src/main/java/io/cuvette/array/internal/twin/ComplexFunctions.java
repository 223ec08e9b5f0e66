package io.cuvette.array.internal.twin;

import io.cuvette.array.BinaryOperation;
import io.cuvette.array.UnaryOperation;
import io.cuvette.array.internal.twin.ElementTwin.LaneFunction;

/** The operations on complex numbers, as functions.cuh has them. Stateless. */
final class ComplexFunctions {
  private ComplexFunctions() {}

  static LaneFunction of(UnaryOperation operation) {
    return (out, in, n) -> {
      Lane x = in[0];
      boolean isSingle = Lane.isSingle(x.type);
      for (int i = 0; i < n; i++) {
        switch (operation) {
          case NEGATE -> set(out, i, -x.re[i], -x.im[i]);
          case ABS -> out.re[i] = Math.hypot(x.re[i], x.im[i]);
          case SQUARE -> multiply(out, i, x.re[i], x.im[i], x.re[i], x.im[i], isSingle);
          case CONJUGATE -> set(out, i, x.re[i], -x.im[i]);
          case REAL -> out.re[i] = x.re[i];
          case IMAG -> out.re[i] = x.im[i];
          default -> throw new AssertionError(operation);
        }
      }
    };
  }

  static LaneFunction of(BinaryOperation operation) {
    return (out, in, n) -> {
      boolean isSingle = Lane.isSingle(in[0].type);
      for (int i = 0; i < n; i++) {
        apply(operation, out, i, in[0], in[1], isSingle);
      }
    };
  }

  private static void apply(
      BinaryOperation operation, Lane out, int i, Lane x, Lane y, boolean isSingle) {
    double a = x.re[i];
    double b = x.im[i];
    double c = y.re[i];
    double d = y.im[i];
    switch (operation) {
      case ADD -> set(out, i, a + c, b + d);
      case SUBTRACT -> set(out, i, a - c, b - d);
      case MULTIPLY -> multiply(out, i, a, b, c, d, isSingle);
      case DIVIDE -> divide(out, i, a, b, c, d, isSingle);
      case EQUAL -> out.bits[i] = a == c && b == d ? 1 : 0;
      case NOT_EQUAL -> out.bits[i] = a == c && b == d ? 0 : 1;
      default -> throw new AssertionError(operation);
    }
  }

  private static void set(Lane out, int i, double re, double im) {
    out.re[i] = re;
    out.im[i] = im;
  }

  /** A step of float arithmetic, or of double. */
  private static double round(double value, boolean isSingle) {
    return isSingle ? (float) value : value;
  }

  static void multiply(Lane out, int i, double a, double b, double c, double d, boolean isSingle) {
    set(
        out,
        i,
        round(a * c, isSingle) - round(b * d, isSingle),
        round(a * d, isSingle) + round(b * c, isSingle));
  }

  /** By Smith's method. */
  private static void divide(
      Lane out, int i, double a, double b, double c, double d, boolean isSingle) {
    if (c == 0 && d == 0) {
      set(out, i, a / Math.abs(c), b / Math.abs(c));
    } else if (Math.abs(c) >= Math.abs(d)) {
      double ratio = round(d / c, isSingle);
      double scale = round(c + round(d * ratio, isSingle), isSingle);
      set(
          out,
          i,
          round(a + round(b * ratio, isSingle), isSingle) / scale,
          round(b - round(a * ratio, isSingle), isSingle) / scale);
    } else {
      double ratio = round(c / d, isSingle);
      double scale = round(round(c * ratio, isSingle) + d, isSingle);
      set(
          out,
          i,
          round(round(a * ratio, isSingle) + b, isSingle) / scale,
          round(round(b * ratio, isSingle) - a, isSingle) / scale);
    }
  }
}

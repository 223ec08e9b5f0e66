package io.cuvette.array;

/** Rounds to floating-point numbers of 2 bytes, to the nearest, ties to even. Stateless. */
final class Halves {
  private static final int QUIET_NAN = 0x7fc0;

  private Halves() {}

  static short toFloat16(double value) {
    return Float.floatToFloat16(toOdd(value));
  }

  static double fromFloat16(short bits) {
    return Float.float16ToFloat(bits);
  }

  static short toBfloat16(double value) {
    int bits = Float.floatToRawIntBits(toOdd(value));
    if (Double.isNaN(value)) {
      return (short) ((bits >>> 16 & 0x8000) | QUIET_NAN);
    }
    return (short) ((bits + 0x7fff + (bits >>> 16 & 1)) >>> 16);
  }

  static double fromBfloat16(short bits) {
    return Float.intBitsToFloat(bits << 16);
  }

  /**
   * The float that is the value, or else that of its two neighbours whose last bit is 1: rounding
   * it again to fewer bits gives what rounding the value at once does.
   */
  private static float toOdd(double value) {
    float rounded = (float) value;
    if (rounded == value || Double.isNaN(value)) {
      return rounded;
    }
    int bits = Float.floatToRawIntBits(rounded);
    boolean isAway = Math.abs((double) rounded) > Math.abs(value);
    return Float.intBitsToFloat((isAway ? bits - 1 : bits) | 1);
  }

  /**
   * A double that rounds to a bfloat16 as the integer does: of more than 53 bits the rest is one.
   */
  static double toOddDouble(long value, boolean isUnsigned) {
    if ((isUnsigned ? value : Math.abs(value)) >>> 53 == 0) {
      return value;
    }
    long rest = (value & 0x7ff) == 0 ? 0 : 1;
    return ((isUnsigned ? value >>> 11 : value >> 11) | rest) * 0x1p11;
  }
}

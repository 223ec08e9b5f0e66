package io.cuvette.array.internal.twin;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import io.cuvette.array.ElementType;
import java.lang.foreign.MemorySegment;

/** Reads and writes values as they lie in memory. Stateless. */
final class Codec {
  private static final int BFLOAT16_SHIFT = 16;

  /** 2 to the power of the bits that a long has more than a double. */
  private static final long CUT_BITS = 1 << 11;

  private Codec() {}

  /** Reads the first elements of some bytes. */
  static void decode(MemorySegment from, int count, Lane to) {
    for (int i = 0; i < count; i++) {
      switch (to.type) {
        case BOOLEAN -> to.bits[i] = from.get(JAVA_BYTE, i) == 0 ? 0 : 1;
        case INT8 -> to.bits[i] = from.get(JAVA_BYTE, i);
        case UINT8 -> to.bits[i] = from.get(JAVA_BYTE, i) & 0xFFL;
        case INT16 -> to.bits[i] = from.get(JAVA_SHORT_UNALIGNED, 2L * i);
        case UINT16 -> to.bits[i] = from.get(JAVA_SHORT_UNALIGNED, 2L * i) & 0xFFFFL;
        case INT32 -> to.bits[i] = from.get(JAVA_INT_UNALIGNED, 4L * i);
        case UINT32 -> to.bits[i] = from.get(JAVA_INT_UNALIGNED, 4L * i) & 0xFFFF_FFFFL;
        case INT64, UINT64 -> to.bits[i] = from.get(JAVA_LONG_UNALIGNED, 8L * i);
        case FLOAT16 -> to.re[i] = Float.float16ToFloat(from.get(JAVA_SHORT_UNALIGNED, 2L * i));
        case BFLOAT16 ->
            to.re[i] =
                Float.intBitsToFloat(from.get(JAVA_SHORT_UNALIGNED, 2L * i) << BFLOAT16_SHIFT);
        case FLOAT32 -> to.re[i] = from.get(JAVA_FLOAT_UNALIGNED, 4L * i);
        case FLOAT64 -> to.re[i] = from.get(JAVA_DOUBLE_UNALIGNED, 8L * i);
        case COMPLEX64 -> {
          to.re[i] = from.get(JAVA_FLOAT_UNALIGNED, 8L * i);
          to.im[i] = from.get(JAVA_FLOAT_UNALIGNED, 8L * i + 4);
        }
        case COMPLEX128 -> {
          to.re[i] = from.get(JAVA_DOUBLE_UNALIGNED, 16L * i);
          to.im[i] = from.get(JAVA_DOUBLE_UNALIGNED, 16L * i + 8);
        }
      }
    }
  }

  /** Writes the first elements into bytes. */
  static void encode(Lane from, int count, MemorySegment to) {
    for (int i = 0; i < count; i++) {
      switch (from.type) {
        case BOOLEAN, INT8, UINT8 -> to.set(JAVA_BYTE, i, (byte) from.bits[i]);
        case INT16, UINT16 -> to.set(JAVA_SHORT_UNALIGNED, 2L * i, (short) from.bits[i]);
        case INT32, UINT32 -> to.set(JAVA_INT_UNALIGNED, 4L * i, (int) from.bits[i]);
        case INT64, UINT64 -> to.set(JAVA_LONG_UNALIGNED, 8L * i, from.bits[i]);
        case FLOAT16 -> to.set(JAVA_SHORT_UNALIGNED, 2L * i, half(from.re[i]));
        case BFLOAT16 -> to.set(JAVA_SHORT_UNALIGNED, 2L * i, bfloat(from.re[i]));
        case FLOAT32 -> to.set(JAVA_FLOAT_UNALIGNED, 4L * i, (float) from.re[i]);
        case FLOAT64 -> to.set(JAVA_DOUBLE_UNALIGNED, 8L * i, from.re[i]);
        case COMPLEX64 -> {
          to.set(JAVA_FLOAT_UNALIGNED, 8L * i, (float) from.re[i]);
          to.set(JAVA_FLOAT_UNALIGNED, 8L * i + 4, (float) from.im[i]);
        }
        case COMPLEX128 -> {
          to.set(JAVA_DOUBLE_UNALIGNED, 16L * i, from.re[i]);
          to.set(JAVA_DOUBLE_UNALIGNED, 16L * i + 8, from.im[i]);
        }
      }
    }
  }

  /** The nearest half, rounded once. */
  static short half(double value) {
    return Float.floatToFloat16(sticky(value));
  }

  /** The nearest bfloat16, rounded once. */
  static short bfloat(double value) {
    int bits = Float.floatToRawIntBits(sticky(value));
    if (Double.isNaN(value)) {
      return 0x7FFF;
    }
    int odd = (bits >>> BFLOAT16_SHIFT) & 1;
    return (short) ((bits + 0x7FFF + odd) >>> BFLOAT16_SHIFT);
  }

  /** A float by rounding to odd: what is rounded again is rounded as if once. */
  private static float sticky(double value) {
    float nearest = (float) value;
    if (nearest == value || Double.isNaN(value) || Double.isInfinite(value)) {
      return nearest;
    }
    int bits = Float.floatToRawIntBits(nearest);
    int cut = Math.abs((double) nearest) > Math.abs(value) ? bits - 1 : bits;
    return Float.intBitsToFloat(cut | 1);
  }

  /** Converts values to another type, as the kernels do: what is stored is rounded once. */
  static void convert(Lane from, int count, Lane to) {
    for (int i = 0; i < count; i++) {
      if (from.isExact()) {
        ofExact(from, i, to);
      } else {
        ofFloating(from, i, to);
      }
    }
  }

  private static void ofExact(Lane from, int i, Lane to) {
    long value = from.bits[i];
    boolean isUnsigned = from.type.isUnsigned();
    switch (to.type) {
      case BOOLEAN -> to.bits[i] = value == 0 ? 0 : 1;
      case FLOAT64, COMPLEX128 -> to.re[i] = asDouble(value, isUnsigned);
      case FLOAT16, BFLOAT16 -> to.re[i] = sticky(value, isUnsigned);
      case FLOAT32, COMPLEX64 -> to.re[i] = asFloat(value, isUnsigned);
      default -> to.bits[i] = value;
    }
    if (to.isComplex()) {
      to.im[i] = 0;
    }
  }

  /** The double of 53 bits by rounding to odd. */
  private static double sticky(long value, boolean isUnsigned) {
    long cut = (value & -CUT_BITS) | ((value & (CUT_BITS - 1)) != 0 ? CUT_BITS : 0);
    boolean isExact = Math.abs(value) < 1L << 52 && value != Long.MIN_VALUE;
    return asDouble(isExact ? value : cut, isUnsigned);
  }

  static double asDouble(long value, boolean isUnsigned) {
    return isUnsigned && value < 0 ? (double) ((value >>> 1) | (value & 1)) * 2 : value;
  }

  private static float asFloat(long value, boolean isUnsigned) {
    return isUnsigned && value < 0 ? (float) ((value >>> 1) | (value & 1)) * 2 : value;
  }

  private static void ofFloating(Lane from, int i, Lane to) {
    double value = from.re[i];
    if (to.isExact()) {
      to.bits[i] =
          to.type == ElementType.BOOLEAN
              ? (value != 0 || (from.isComplex() && from.im[i] != 0) ? 1 : 0)
              : saturated(value, to.type);
    } else {
      to.re[i] = value;
      if (to.isComplex()) {
        to.im[i] = from.isComplex() ? from.im[i] : 0;
      }
    }
  }

  private static long saturated(double value, ElementType type) {
    int bits = type.bytes() * Byte.SIZE;
    if (!type.isUnsigned()) {
      long high = -1L >>> (Long.SIZE - bits + 1);
      return Math.clamp((long) value, ~high, high);
    }
    if (!(value > 0)) {
      return 0;
    }
    if (value >= Math.scalb(1.0, bits)) {
      return -1L >>> (Long.SIZE - bits);
    }
    return value < 0x1p63 ? (long) value : (long) (value - 0x1p63) ^ Long.MIN_VALUE;
  }
}

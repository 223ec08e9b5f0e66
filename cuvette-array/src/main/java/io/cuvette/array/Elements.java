package io.cuvette.array;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import java.lang.foreign.MemorySegment;

/** Reads, writes and converts single elements in memory of the host. Stateless. */
final class Elements {
  private Elements() {}

  /** An element of an integer type or BOOLEAN; of UINT64 its bits. */
  static long integer(ElementType type, MemorySegment from, long at) {
    return switch (type) {
      case BOOLEAN -> from.get(JAVA_BYTE, at) == 0 ? 0 : 1;
      case INT8 -> from.get(JAVA_BYTE, at);
      case UINT8 -> Byte.toUnsignedLong(from.get(JAVA_BYTE, at));
      case INT16 -> from.get(JAVA_SHORT_UNALIGNED, at);
      case UINT16 -> Short.toUnsignedLong(from.get(JAVA_SHORT_UNALIGNED, at));
      case INT32 -> from.get(JAVA_INT_UNALIGNED, at);
      case UINT32 -> Integer.toUnsignedLong(from.get(JAVA_INT_UNALIGNED, at));
      case INT64, UINT64 -> from.get(JAVA_LONG_UNALIGNED, at);
      default -> throw new IllegalArgumentException(type + " (expected: an integer type)");
    };
  }

  /** An element of a real type as the nearest double. */
  static double real(ElementType type, MemorySegment from, long at) {
    return switch (type) {
      case FLOAT16 -> Halves.fromFloat16(from.get(JAVA_SHORT_UNALIGNED, at));
      case BFLOAT16 -> Halves.fromBfloat16(from.get(JAVA_SHORT_UNALIGNED, at));
      case FLOAT32 -> from.get(JAVA_FLOAT_UNALIGNED, at);
      case FLOAT64 -> from.get(JAVA_DOUBLE_UNALIGNED, at);
      case UINT64 -> unsignedToDouble(from.get(JAVA_LONG_UNALIGNED, at));
      default -> integer(type, from, at);
    };
  }

  /** An element of any type. */
  static Complex complex(ElementType type, MemorySegment from, long at) {
    if (!type.isComplex()) {
      return new Complex(real(type, from, at), 0);
    }
    ElementType part = type.realType();
    return new Complex(real(part, from, at), real(part, from, at + part.bytes()));
  }

  /** Converts an integer, of UINT64 if it is unsigned. */
  static void putInteger(
      ElementType type, MemorySegment to, long at, long value, boolean isUnsigned) {
    switch (type) {
      case BOOLEAN -> to.set(JAVA_BYTE, at, (byte) (value == 0 ? 0 : 1));
      case INT8, UINT8 -> to.set(JAVA_BYTE, at, (byte) value);
      case INT16, UINT16 -> to.set(JAVA_SHORT_UNALIGNED, at, (short) value);
      case INT32, UINT32 -> to.set(JAVA_INT_UNALIGNED, at, (int) value);
      case INT64, UINT64 -> to.set(JAVA_LONG_UNALIGNED, at, value);
      case FLOAT32, COMPLEX64 -> {
        to.set(JAVA_FLOAT_UNALIGNED, at, isUnsigned ? unsignedToFloat(value) : value);
        putNoImaginary(type, to, at);
      }
      case FLOAT16, BFLOAT16 -> putReal(type, to, at, Halves.toOddDouble(value, isUnsigned));
      case FLOAT64, COMPLEX128 -> {
        to.set(JAVA_DOUBLE_UNALIGNED, at, isUnsigned ? unsignedToDouble(value) : value);
        putNoImaginary(type, to, at);
      }
    }
  }

  /** Converts a real number. */
  static void putReal(ElementType type, MemorySegment to, long at, double value) {
    switch (type) {
      case BOOLEAN -> to.set(JAVA_BYTE, at, (byte) (value == 0 ? 0 : 1));
      case INT8 -> to.set(JAVA_BYTE, at, (byte) Math.clamp((int) value, Byte.MIN_VALUE, 0x7f));
      case UINT8 -> to.set(JAVA_BYTE, at, (byte) Math.clamp((int) value, 0, 0xff));
      case INT16 ->
          to.set(
              JAVA_SHORT_UNALIGNED, at, (short) Math.clamp((int) value, Short.MIN_VALUE, 0x7fff));
      case UINT16 -> to.set(JAVA_SHORT_UNALIGNED, at, (short) Math.clamp((int) value, 0, 0xffff));
      case INT32 -> to.set(JAVA_INT_UNALIGNED, at, (int) value);
      case UINT32 ->
          to.set(JAVA_INT_UNALIGNED, at, (int) Math.clamp((long) value, 0, 0xffff_ffffL));
      case INT64 -> to.set(JAVA_LONG_UNALIGNED, at, (long) value);
      case UINT64 -> to.set(JAVA_LONG_UNALIGNED, at, toUnsigned(value));
      case FLOAT16 -> to.set(JAVA_SHORT_UNALIGNED, at, Halves.toFloat16(value));
      case BFLOAT16 -> to.set(JAVA_SHORT_UNALIGNED, at, Halves.toBfloat16(value));
      case FLOAT32, COMPLEX64 -> {
        to.set(JAVA_FLOAT_UNALIGNED, at, (float) value);
        putNoImaginary(type, to, at);
      }
      case FLOAT64, COMPLEX128 -> {
        to.set(JAVA_DOUBLE_UNALIGNED, at, value);
        putNoImaginary(type, to, at);
      }
    }
  }

  /** Converts a complex number, of which real types take the real part. */
  static void putComplex(ElementType type, MemorySegment to, long at, Complex value) {
    if (type == ElementType.BOOLEAN) {
      boolean isZero = value.real() == 0 && value.imaginary() == 0;
      to.set(JAVA_BYTE, at, (byte) (isZero ? 0 : 1));
      return;
    }
    putReal(type, to, at, value.real());
    if (type.isComplex()) {
      ElementType part = type.realType();
      putReal(part, to, at + part.bytes(), value.imaginary());
    }
  }

  /** Converts an element of one type to one of another. */
  static void convert(
      ElementType from,
      MemorySegment source,
      long at,
      ElementType to,
      MemorySegment target,
      long place) {
    switch (from.kind()) {
      case FLOATING -> putReal(to, target, place, real(from, source, at));
      case COMPLEX -> putComplex(to, target, place, complex(from, source, at));
      default ->
          putInteger(to, target, place, integer(from, source, at), from == ElementType.UINT64);
    }
  }

  private static void putNoImaginary(ElementType type, MemorySegment to, long at) {
    if (type == ElementType.COMPLEX64) {
      to.set(JAVA_FLOAT_UNALIGNED, at + Float.BYTES, 0);
    } else if (type == ElementType.COMPLEX128) {
      to.set(JAVA_DOUBLE_UNALIGNED, at + Double.BYTES, 0);
    }
  }

  /**
   * The half of a large number, with what is cut off as its last bit, rounds as the number does.
   */
  private static long half(long value) {
    return (value >>> 1) | (value & 1);
  }

  static double unsignedToDouble(long value) {
    return value >= 0 ? value : half(value) * 2.0;
  }

  private static float unsignedToFloat(long value) {
    return value >= 0 ? value : half(value) * 2f;
  }

  private static long toUnsigned(double value) {
    if (value < 0x1p63) {
      return Math.max((long) value, 0);
    }
    return value >= 0x1p64
        ? -1
        : Double.isNaN(value) ? 0 : (long) (value - 0x1p63) ^ Long.MIN_VALUE;
  }
}

package io.cuvette.array;

import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * One element as its bits in memory.
 *
 * @param type the type
 * @param low the first 8 bytes, or as many as there are
 * @param high the second 8 bytes of COMPLEX128, else 0
 */
record Scalar(ElementType type, long low, long high) {

  static Scalar of(ElementType type, long value) {
    if (Objects.requireNonNull(type, "type").isInteger() && !holds(type, value)) {
      throw outOfRange(type, Long.toString(value));
    }
    return made(type, bits -> Elements.putInteger(type, bits, 0, value, false));
  }

  static Scalar of(ElementType type, double value) {
    if (Objects.requireNonNull(type, "type").isInteger()
        && !(value == Math.rint(value) && least(type) <= value && value < limit(type))) {
      throw outOfRange(type, Double.toString(value));
    }
    return made(type, bits -> Elements.putReal(type, bits, 0, value));
  }

  static Scalar of(ElementType type, Complex value) {
    Objects.requireNonNull(type, "type");
    Objects.requireNonNull(value, "value");
    if (!type.isComplex()) {
      if (value.imaginary() != 0) {
        throw new IllegalArgumentException(
            "value: %s (expected: a real number for %s)".formatted(value, type));
      }
      return of(type, value.real());
    }
    return made(type, bits -> Elements.putComplex(type, bits, 0, value));
  }

  private interface Write {
    void into(MemorySegment bits);
  }

  private static Scalar made(ElementType type, Write write) {
    MemorySegment bits = MemorySegment.ofArray(new long[2]);
    write.into(bits);
    return new Scalar(type, bits.get(JAVA_LONG_UNALIGNED, 0), bits.get(JAVA_LONG_UNALIGNED, 8));
  }

  /** Whether all bytes are the same. */
  boolean isOneByte() {
    long repeated = (low & 0xff) * 0x0101_0101_0101_0101L;
    int unused = Math.max(0, Long.SIZE - 8 * type.bytes());
    return (repeated ^ low) << unused == 0 && (type.bytes() < 16 || high == repeated);
  }

  /** Writes the element. */
  void write(MemorySegment to, long at) {
    MemorySegment.copy(segment(), 0, to, at, type.bytes());
  }

  /** The memory of one element. */
  MemorySegment segment() {
    return MemorySegment.ofArray(new long[] {low, high}).asSlice(0, type.bytes());
  }

  private static boolean holds(ElementType type, long value) {
    if (type.isUnsigned()) {
      return value >= 0 && (type.bytes() == 8 || value >>> (8 * type.bytes()) == 0);
    }
    int unused = Long.SIZE - 8 * type.bytes();
    return value << unused >> unused == value;
  }

  private static double least(ElementType type) {
    return type.isUnsigned() ? 0 : -Math.scalb(1.0, 8 * type.bytes() - 1);
  }

  private static double limit(ElementType type) {
    return Math.scalb(1.0, 8 * type.bytes() - (type.isUnsigned() ? 0 : 1));
  }

  private static IllegalArgumentException outOfRange(ElementType type, String value) {
    int bits = 8 * type.bytes();
    String range =
        type.isUnsigned()
            ? "0 to 2^%d-1".formatted(bits)
            : "-2^%1$d to 2^%1$d-1".formatted(bits - 1);
    return new IllegalArgumentException(
        "value: %s (expected: an integer of %s: %s)".formatted(value, type, range));
  }
}

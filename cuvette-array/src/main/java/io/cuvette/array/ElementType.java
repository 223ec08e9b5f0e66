package io.cuvette.array;

import static io.cuvette.array.ElementKind.BOOL;
import static io.cuvette.array.ElementKind.COMPLEX;
import static io.cuvette.array.ElementKind.FLOATING;
import static io.cuvette.array.ElementKind.SIGNED;
import static io.cuvette.array.ElementKind.UNSIGNED;

import java.util.Objects;

/**
 * The type of an array's elements. Each lies in memory as on the device, in the byte order of the
 * host, at addresses that are multiples of its size (of half of it, if it is complex).
 */
public enum ElementType {
  /** One byte: 0 for false, 1 for true. */
  BOOLEAN(BOOL, 1),
  /** A signed byte, Java's {@code byte}. */
  INT8(SIGNED, 1),
  /** A signed 2-byte integer, Java's {@code short}. */
  INT16(SIGNED, 2),
  /** A signed 4-byte integer, Java's {@code int}. */
  INT32(SIGNED, 4),
  /** A signed 8-byte integer, Java's {@code long}. */
  INT64(SIGNED, 8),
  /** An unsigned byte. */
  UINT8(UNSIGNED, 1),
  /** An unsigned 2-byte integer, Java's {@code char}. */
  UINT16(UNSIGNED, 2),
  /** An unsigned 4-byte integer. */
  UINT32(UNSIGNED, 4),
  /** An unsigned 8-byte integer. */
  UINT64(UNSIGNED, 8),
  /** A 2-byte floating-point number of IEEE 754 (binary16): 11 bits of precision. */
  FLOAT16(FLOATING, 2),
  /** The upper half of a {@code float}: 8 bits of precision, its range. */
  BFLOAT16(FLOATING, 2),
  /** Java's {@code float}. */
  FLOAT32(FLOATING, 4),
  /** Java's {@code double}. */
  FLOAT64(FLOATING, 8),
  /** Two floats, the real part first. */
  COMPLEX64(COMPLEX, 8),
  /** Two doubles, the real part first. */
  COMPLEX128(COMPLEX, 16);

  private final ElementKind kind;
  private final int bytes;

  ElementType(ElementKind kind, int bytes) {
    this.kind = kind;
    this.bytes = bytes;
  }

  /** {@return the size of an element in bytes: 1, 2, 4, 8 or 16} */
  public int bytes() {
    return bytes;
  }

  /** {@return what its addresses are multiples of, in bytes} */
  public int alignment() {
    return isComplex() ? bytes / 2 : bytes;
  }

  /** {@return whether it is an integer, signed or unsigned; false for {@link #BOOLEAN}} */
  public boolean isInteger() {
    return kind == SIGNED || kind == UNSIGNED;
  }

  /** {@return whether it is an unsigned integer} */
  public boolean isUnsigned() {
    return kind == UNSIGNED;
  }

  /** {@return whether it is a real floating-point number} */
  public boolean isFloating() {
    return kind == FLOATING;
  }

  /** {@return whether it has a real and an imaginary part} */
  public boolean isComplex() {
    return kind == COMPLEX;
  }

  /**
   * {@return the type of the parts of a complex type, and this type for all others}
   *
   * <p>FLOAT32 for COMPLEX64, FLOAT64 for COMPLEX128.
   */
  public ElementType realType() {
    return this == COMPLEX64 ? FLOAT32 : this == COMPLEX128 ? FLOAT64 : this;
  }

  /**
   * {@return the smallest type that holds what both do, as in NumPy} An integer of 16 bits and
   * FLOAT16 give FLOAT32, one of 32 bits and more with any floating type FLOAT64, INT64 and UINT64
   * FLOAT64, FLOAT16 and BFLOAT16 FLOAT32.
   *
   * @param other the other type
   */
  public ElementType commonWith(ElementType other) {
    return CommonType.of(this, Objects.requireNonNull(other, "other"));
  }

  /**
   * {@return the type for a primitive type of Java: UINT16 for {@code char}, the signed integers,
   * FLOAT32, FLOAT64, BOOLEAN}
   *
   * @param primitive {@code float.class} for example
   * @throws IllegalArgumentException for any other class
   */
  public static ElementType of(Class<?> primitive) {
    Objects.requireNonNull(primitive, "primitive");
    return switch (primitive.getName()) {
      case "boolean" -> BOOLEAN;
      case "byte" -> INT8;
      case "short" -> INT16;
      case "char" -> UINT16;
      case "int" -> INT32;
      case "long" -> INT64;
      case "float" -> FLOAT32;
      case "double" -> FLOAT64;
      default ->
          throw new IllegalArgumentException(
              "type: %s (expected: a primitive type of Java)".formatted(primitive.getName()));
    };
  }

  ElementKind kind() {
    return kind;
  }
}

package io.cuvette.arrow;

import io.cuvette.Buffer;
import io.cuvette.PinnedBuffer;
import java.util.List;
import org.apache.arrow.vector.BufferLayout.BufferType;
import org.apache.arrow.vector.TypeLayout;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;

/**
 * What memory columns of a type have: those of fixed width, fixed-size lists, structs. Stateless.
 */
final class Columns {
  private static final List<BufferType> FIXED_WIDTH = List.of(BufferType.VALIDITY, BufferType.DATA);

  private Columns() {}

  /**
   * Checks a field, and those below it.
   *
   * @throws IllegalArgumentException if a column of it has other memory
   */
  static void check(Field field) {
    ArrowType type = field.getType();
    if (field.getDictionary() != null || type instanceof ArrowType.ExtensionType) {
      throw refused(field);
    }
    if (isNested(field)) {
      int children = field.getChildren().size();
      if (type instanceof ArrowType.FixedSizeList list
          && (children != 1 || list.getListSize() < 0)) {
        throw new IllegalArgumentException(
            "%s: %d fields and size %d (expected: one field, and size >= 0)"
                .formatted(field, children, list.getListSize()));
      }
      field.getChildren().forEach(Columns::check);
    } else if (!isFixedWidth(type)) {
      throw refused(field);
    }
  }

  /** Of binaries of one size, Arrow's layout has the lower 16 bits of the width alone. */
  private static boolean isFixedWidth(ArrowType type) {
    return type instanceof ArrowType.FixedSizeBinary binary
        ? binary.getByteWidth() > 0
        : TypeLayout.getTypeLayout(type).getBufferTypes().equals(FIXED_WIDTH);
  }

  private static IllegalArgumentException refused(Field field) {
    return new IllegalArgumentException(
        "%s (expected: a type of fixed width, a fixed-size list or a struct, without a dictionary)"
            .formatted(field));
  }

  static boolean isNested(Field field) {
    return isStruct(field) || field.getType() instanceof ArrowType.FixedSizeList;
  }

  static boolean isStruct(Field field) {
    return field.getType() instanceof ArrowType.Struct;
  }

  /** The bits of a value of a column of fixed width. */
  static long bits(Field field) {
    return field.getType() instanceof ArrowType.FixedSizeBinary binary
        ? (long) Byte.SIZE * binary.getByteWidth()
        : TypeLayout.getTypeLayout(field.getType()).getBufferLayouts().get(1).getTypeBitWidth();
  }

  /** What addresses of values are multiples of, in bytes. */
  static long alignment(Field field) {
    long bytes = bits(field) / Byte.SIZE;
    return Long.bitCount(bytes) == 1 ? Math.min(bytes, Long.BYTES) : 1;
  }

  /** The bytes of so many bits. */
  static long bytes(long count, long bits) {
    try {
      long whole = Math.multiplyExact(count, bits);
      return whole / Byte.SIZE + (whole % Byte.SIZE == 0 ? 0 : 1);
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException(
          "%d values of %d bits (expected: at most 2^63-1 bits)".formatted(count, bits), e);
    }
  }

  /** How many values the children of a nested column have, for so many of its own. */
  static long ofChildren(Field field, long count) {
    if (isStruct(field)) {
      return count;
    }
    int size = ((ArrowType.FixedSizeList) field.getType()).getListSize();
    try {
      return Math.multiplyExact(count, (long) size);
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException(
          "%d lists of %d (expected: at most 2^63-1 values)".formatted(count, size), e);
    }
  }

  /** Checks that a buffer has the values of a column, so many, where they can be. */
  static void checkData(Buffer buffer, long count, Field field) {
    check("data", buffer, count, bits(field));
    long alignment = alignment(field);
    if (buffer.byteSize() > 0 && buffer.address() % alignment != 0) {
      throw new IllegalArgumentException(
          "data: 0x%x (expected: a multiple of %d for %s)"
              .formatted(buffer.address(), alignment, field));
    }
  }

  /** Checks that a buffer has the bits of so many values, in memory that a device sees. */
  static void check(String name, Buffer buffer, long count, long bits) {
    long bytes = bytes(count, bits);
    if (buffer.isClosed()) {
      throw new IllegalStateException("%s: %s is closed".formatted(name, buffer));
    }
    if (buffer instanceof PinnedBuffer) {
      throw new IllegalArgumentException(
          "%s: %s (expected: memory of a device, or managed)".formatted(name, buffer));
    }
    if (buffer.byteSize() < bytes) {
      throw new IllegalArgumentException(
          "%s: %d bytes (expected: >= %d for %d values of %d bits)"
              .formatted(name, buffer.byteSize(), bytes, count, bits));
    }
  }
}

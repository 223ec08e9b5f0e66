package io.cuvette.internal.kernel;

import io.cuvette.driver.KernelParameter;
import io.cuvette.internal.block.Memory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** How Java values are passed to kernels. Stateless. */
final class ArgumentValues {
  private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
  private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
  private static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;
  private static final ValueLayout.OfChar CHAR = ValueLayout.JAVA_CHAR_UNALIGNED;
  private static final ValueLayout.OfByte BYTE = ValueLayout.JAVA_BYTE;
  private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;
  private static final ValueLayout.OfDouble DOUBLE = ValueLayout.JAVA_DOUBLE_UNALIGNED;

  private static final long STRUCTURE_ALIGNMENT = 16;

  private ArgumentValues() {}

  /**
   * Places for arguments of a kernel whose parameters are not known: the driver reads each alone.
   */
  static List<KernelParameter> places(@Nullable Object[] arguments, ArgumentReader reader) {
    List<KernelParameter> places = new ArrayList<>();
    long offset = 0;
    for (int i = 0; i < arguments.length; i++) {
      long size = size(i, reader.read(arguments[i]));
      long alignment = size > Long.BYTES ? STRUCTURE_ALIGNMENT : Math.max(1, size);
      offset = (offset + alignment - 1) / alignment * alignment;
      places.add(new KernelParameter(offset, size));
      offset += size;
    }
    return places;
  }

  /**
   * Writes an argument, which has the size of its parameter. What kernels are given most comes
   * first.
   */
  static void put(
      MemorySegment values, KernelParameter place, int index, @Nullable Object argument) {
    long at = place.offset();
    long size = place.size();
    if (argument instanceof Memory memory && size == Long.BYTES) {
      values.set(LONG, at, memory.address());
    } else if (argument instanceof Integer value && size == Integer.BYTES) {
      values.set(INT, at, value);
    } else if (argument instanceof Float value && size == Float.BYTES) {
      values.set(FLOAT, at, value);
    } else {
      checkSize(place, index, argument);
      putOther(values, at, index, argument);
    }
  }

  private static void checkSize(KernelParameter place, int index, @Nullable Object argument) {
    long size = size(index, argument);
    if (argument != null && size != place.size()) {
      throw new IllegalArgumentException(
          "argument %d: %s of %d bytes (expected: %s)"
              .formatted(index, text(argument), size, expected(place.size(), argument)));
    }
  }

  private static void putOther(
      MemorySegment values, long at, int index, @Nullable Object argument) {
    switch (argument) {
      case Long value -> values.set(LONG, at, value);
      case Double value -> values.set(DOUBLE, at, value);
      case Short value -> values.set(SHORT, at, value);
      case Character value -> values.set(CHAR, at, value);
      case Byte value -> values.set(BYTE, at, value);
      case Boolean value -> values.set(BYTE, at, (byte) (value ? 1 : 0));
      case MemorySegment structure ->
          MemorySegment.copy(structure, 0, values, at, structure.byteSize());
      case null -> throw missing(index);
      default -> throw unknown(index, argument);
    }
  }

  private static NullPointerException missing(int index) {
    return new NullPointerException("argument %d: null".formatted(index));
  }

  private static long size(int index, @Nullable Object argument) {
    return switch (argument) {
      case null -> throw missing(index);
      case Memory _, Long _, Double _ -> Long.BYTES;
      case Integer _, Float _ -> Integer.BYTES;
      case Short _, Character _ -> Short.BYTES;
      case Byte _, Boolean _ -> Byte.BYTES;
      case MemorySegment structure -> structure.byteSize();
      default -> throw unknown(index, argument);
    };
  }

  private static IllegalArgumentException unknown(int index, Object argument) {
    return new IllegalArgumentException(
        "argument %d: %s (expected: a Buffer, a number, a boolean, or a MemorySegment that is a structure;%s)"
            .formatted(
                index,
                text(argument),
                " copy arrays of Java into a Buffer, take the buffer() of a CudaArray"));
  }

  private static String text(Object argument) {
    return switch (argument) {
      case Memory memory -> memory.toString();
      case MemorySegment segment ->
          (segment.isNative() ? "" : "heap ") + "MemorySegment, passed as a structure by value,";
      case Long _, Integer _, Short _, Byte _, Double _, Float _, Character _, Boolean _ ->
          "%s %s".formatted(primitive(argument.getClass()), argument);
      default -> argument.getClass().getTypeName();
    };
  }

  private static String primitive(Class<?> type) {
    return type == Integer.class
        ? "int"
        : type == Character.class ? "char" : type.getSimpleName().toLowerCase(Locale.ROOT);
  }

  /** What a parameter of a size takes. */
  static String expected(long size, @Nullable Object instead) {
    String what =
        switch ((int) Math.min(size, 99)) {
          case 1 -> "1 byte: a byte or boolean";
          case 2 -> "2 bytes: a short or char";
          case 4 -> "4 bytes: an int or float";
          case 8 -> "8 bytes: a Buffer, long or double";
          default -> "%d bytes: a structure as a MemorySegment".formatted(size);
        };
    return instead instanceof MemorySegment && size == Long.BYTES
        ? what + "; data of the host is passed as a Buffer it was copied into"
        : what;
  }

  /** The bytes that a type of Java is passed in; 0 for a structure, whose size its value has. */
  static long sizeOf(Class<?> type) {
    if (type == MemorySegment.class) {
      return 0;
    }
    if (type == long.class || type == double.class) {
      return Long.BYTES;
    }
    if (type == int.class || type == float.class) {
      return Integer.BYTES;
    }
    if (type == short.class || type == char.class) {
      return Short.BYTES;
    }
    return type == byte.class || type == boolean.class ? Byte.BYTES : -1;
  }
}

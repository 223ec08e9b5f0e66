package io.cuvette.array;

import io.cuvette.HostRows;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Array;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/** Copies between arrays of Java, nested once for each axis, and arrays of elements. Stateless. */
final class JavaArrays {
  private JavaArrays() {}

  /** The type of the elements. */
  static ElementType type(Object values) {
    return ElementType.of(element(values.getClass()));
  }

  private static Class<?> element(Class<?> type) {
    Class<?> element = type;
    while (element.isArray()) {
      element = element.getComponentType();
    }
    if (element == type || !element.isPrimitive()) {
      throw new IllegalArgumentException(
          "values: %s (expected: an array of a primitive type, nested or not, or an NdArray)"
              .formatted(type.getTypeName()));
    }
    return element;
  }

  private static int depth(Class<?> type) {
    return type.isArray() ? 1 + depth(type.getComponentType()) : 0;
  }

  /** The size of each axis; all arrays at one depth have the same. */
  static long[] shape(Object values) {
    Class<?> _ = element(values.getClass());
    long[] shape = new long[depth(values.getClass())];
    Arrays.fill(shape, -1);
    measure(values, 0, shape);
    for (int axis = 0; axis < shape.length; axis++) {
      shape[axis] = Math.max(shape[axis], 0); // below an axis of size 0
    }
    return shape;
  }

  private static void measure(Object values, int axis, long[] shape) {
    int length = Array.getLength(values);
    if (shape[axis] >= 0 && shape[axis] != length) {
      throw new IllegalArgumentException(
          "values: arrays of %d and %d elements at depth %d (expected: equal sizes)"
              .formatted(shape[axis], length, axis));
    }
    shape[axis] = length;
    if (axis + 1 < shape.length) {
      for (Object each : (Object[]) values) {
        measure(Objects.requireNonNull(each, "values has an array that is null"), axis + 1, shape);
      }
    }
  }

  /** Copies into an array of the shape of the values, in order C without gaps. */
  static void read(Object values, NdArray target) {
    if (target.size() == 0) {
      return;
    }
    if (target instanceof CudaArray device) {
      ElementType type = type(values);
      if (type == ElementType.BOOLEAN || (type != device.type() && device.rank() > 1)) {
        try (HostArray host = hosts(device).allocate(device.type(), device.layout())) {
          read(values, host);
          device.copyFrom(host);
        }
      } else if (device.rank() > 1) {
        device.bytes().gatherFrom(HostRows.of(rows(values)));
      } else {
        device.copyFrom(hosts(device).wrap(segment(values), type, device.layout()));
      }
    } else {
      eachRow(values, (HostArray) target, false);
    }
  }

  private static String expected(NdArray source) {
    if (source.rank() == 0) {
      return "toHost().getDouble() or getLong(), as there are no axes";
    }
    String array =
        "an array of %d dimensions with elements of %s".formatted(source.rank(), source.type());
    return switch (source.type()) {
      case BOOLEAN, INT8, INT16, UINT16, INT32, INT64, FLOAT32, FLOAT64 -> array;
      default -> array + ", which Java does not have: convert them with asType";
    };
  }

  /** A new array of Java with the elements of an array. */
  static <T> T write(NdArray source, Class<T> javaType) {
    Objects.requireNonNull(javaType, "javaType");
    int depth = depth(javaType);
    if (depth == 0
        || depth != source.rank()
        || ElementType.of(element(javaType)) != source.type()) {
      throw new IllegalArgumentException(
          "javaType: %s (expected: %s)".formatted(javaType.getTypeName(), expected(source)));
    }
    int[] sizes = new int[depth];
    for (int axis = 0; axis < depth; axis++) {
      if (source.shape()[axis] > Integer.MAX_VALUE) {
        throw new IllegalArgumentException(
            "shape: %s (expected: at most 2^31-1 on each axis)"
                .formatted(Arrays.toString(source.shape())));
      }
      sizes[axis] = (int) source.shape()[axis];
    }
    T made = javaType.cast(Array.newInstance(element(javaType), sizes));
    if (source instanceof CudaArray device
        && source.size() > 0
        && source.type() != ElementType.BOOLEAN
        && source.isContiguous(Order.C)) {
      device.checkOpen();
      device.bytes().scatterTo(HostRows.of(rows(made)));
    } else {
      try (HostArray host = source.toHost()) {
        eachRow(made, host, true);
      }
    }
    return made;
  }

  private static HostArrays hosts(CudaArray device) {
    return HostArrays.of(device.module().cuda());
  }

  /** The arrays of elements, in their order. */
  private static List<Object> rows(Object values) {
    List<Object> rows = new ArrayList<>();
    collect(values, rows);
    return rows;
  }

  private static void collect(Object values, List<Object> rows) {
    if (values instanceof Object[] arrays) {
      for (Object each : arrays) {
        collect(each, rows);
      }
    } else {
      rows.add(values);
    }
  }

  /** Copies row by row, out of the array or into it. */
  private static void eachRow(Object values, HostArray array, boolean out) {
    if (array.rank() > 1) {
      for (int i = 0; i < Array.getLength(values); i++) {
        eachRow(Array.get(values, i), array.slice(Range.at(i)), out);
      }
    } else if (values instanceof boolean[] flags) {
      eachFlag(flags, array, out);
    } else {
      ElementType type = type(values);
      HostArray row = array.module().wrap(segment(values), type, Layout.of(array.size()));
      (out ? row : array).copyFrom(out ? array : row);
    }
  }

  private static void eachFlag(boolean[] flags, HostArray array, boolean out) {
    for (int i = 0; i < flags.length; i++) {
      if (out) {
        flags[i] = array.getLong(i) != 0;
      } else {
        array.setLong(flags[i] ? 1 : 0, i);
      }
    }
  }

  private static MemorySegment segment(Object values) {
    return switch (values) {
      case byte[] array -> MemorySegment.ofArray(array);
      case short[] array -> MemorySegment.ofArray(array);
      case char[] array -> MemorySegment.ofArray(array);
      case int[] array -> MemorySegment.ofArray(array);
      case long[] array -> MemorySegment.ofArray(array);
      case float[] array -> MemorySegment.ofArray(array);
      case double[] array -> MemorySegment.ofArray(array);
      default -> throw new IllegalArgumentException(values.getClass().getTypeName());
    };
  }
}

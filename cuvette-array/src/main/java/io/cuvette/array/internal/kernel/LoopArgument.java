package io.cuvette.array.internal.kernel;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;

/**
 * A loop over the elements of a result and up to three operands: {@code Loop} of loop.cuh. Axes
 * come from the fastest on. The arrays are its own.
 *
 * @param shape the size of each axis
 * @param strides of the result and of each operand, the distance along each axis in bytes
 * @param offsets of the result and of each operand, where the first element is in its memory, in
 *     bytes
 * @param values of each operand, the bits of its one value, as two longs; empty for one in memory
 */
@SuppressWarnings("ArrayRecordComponent") // nobody compares them
public record LoopArgument(
    long count, boolean vector, long[] shape, long[][] strides, long[] offsets, long[][] values) {
  /** The most axes. */
  public static final int MAX_RANK = 32;

  /** The most operands. */
  public static final int OPERANDS = 3;

  /** The size of the structure in bytes. */
  public static final int BYTES = 1392;

  private static final int RANK = 8;
  private static final int MODE = 12;
  private static final int OFFSETS = 16;
  private static final int IMMEDIATE = 48;
  private static final int VALUES = 64;
  private static final int SHAPE = 112;
  private static final int STRIDES = SHAPE + MAX_RANK * Long.BYTES;

  /** The structure. */
  public MemorySegment structure() {
    MemorySegment s = MemorySegment.ofArray(new long[BYTES / Long.BYTES]);
    s.set(JAVA_LONG, 0, count);
    s.set(JAVA_INT, RANK, shape.length);
    s.set(JAVA_INT, MODE, vector ? 0 : 1);
    put(s, OFFSETS, offsets);
    put(s, SHAPE, shape);
    int immediate = 0;
    for (int k = 0; k < strides.length; k++) {
      put(s, STRIDES + (long) k * MAX_RANK * Long.BYTES, strides[k]);
      if (k > 0 && values[k - 1].length > 0) {
        immediate |= 1 << (k - 1);
        put(s, VALUES + (k - 1) * 2L * Long.BYTES, values[k - 1]);
      }
    }
    s.set(JAVA_INT, IMMEDIATE, immediate);
    return s;
  }

  /** Reads the structure. */
  public static LoopArgument of(MemorySegment s) {
    int rank = s.get(JAVA_INT, RANK);
    int immediate = s.get(JAVA_INT, IMMEDIATE);
    long[][] strides = new long[OPERANDS + 1][];
    long[][] values = new long[OPERANDS][];
    for (int k = 0; k <= OPERANDS; k++) {
      strides[k] = get(s, STRIDES + (long) k * MAX_RANK * Long.BYTES, rank);
      if (k > 0) {
        boolean isValue = ((immediate >> (k - 1)) & 1) == 1;
        values[k - 1] = get(s, VALUES + (k - 1) * 2L * Long.BYTES, isValue ? 2 : 0);
      }
    }
    return new LoopArgument(
        s.get(JAVA_LONG, 0),
        s.get(JAVA_INT, MODE) == 0,
        get(s, SHAPE, rank),
        strides,
        get(s, OFFSETS, OPERANDS + 1),
        values);
  }

  static void put(MemorySegment s, long at, long... values) {
    for (int i = 0; i < values.length; i++) {
      s.set(JAVA_LONG, at + (long) i * Long.BYTES, values[i]);
    }
  }

  static long[] get(MemorySegment s, long at, int count) {
    long[] result = new long[count];
    for (int i = 0; i < count; i++) {
      result[i] = s.get(JAVA_LONG, at + (long) i * Long.BYTES);
    }
    return result;
  }
}

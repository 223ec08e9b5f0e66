package io.cuvette.internal.hostcopy;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.AbstractList;
import java.util.RandomAccess;
import java.util.Set;

/**
 * Arrays, byte buffers and segments as segments, which are made when they are read: a million rows
 * need no million objects. Immutable, but for what they hold.
 */
public final class ArrayRows extends AbstractList<MemorySegment> implements RandomAccess {
  private static final Set<Class<?>> ARRAYS =
      Set.of(
          float[].class,
          double[].class,
          byte[].class,
          int[].class,
          long[].class,
          short[].class,
          char[].class);

  /** So many rows are measured by one thread: they are far apart, and each a miss of the cache. */
  private static final int ROWS = 1 << 14;

  private final Object[] rows;
  private final boolean areArrays;

  /**
   * Takes a copy of the list of rows.
   *
   * @throws NullPointerException if a row is null
   * @throws IllegalArgumentException for a row that has no bytes to see
   */
  public ArrayRows(Object[] rows) {
    this.rows = rows.clone();
    boolean matrix = ARRAYS.contains(rows.getClass().componentType()); // no row needs a look
    boolean arrays = true;
    for (int i = 0; i < this.rows.length; i++) {
      Object row = this.rows[i];
      if (row == null) {
        throw new NullPointerException("rows[%d]".formatted(i));
      }
      if (!matrix && !ARRAYS.contains(row.getClass())) {
        arrays = false;
        this.rows[i] = segment(row, i);
      }
    }
    this.areArrays = arrays;
  }

  /** Of a byte buffer what is between its position and its limit now. */
  private static MemorySegment segment(Object row, int index) {
    return switch (row) {
      case MemorySegment segment -> segment;
      case ByteBuffer buffer -> MemorySegment.ofBuffer(buffer);
      default ->
          throw new IllegalArgumentException(
              ("rows[%d]: %s (expected: an array of byte, char, short, int, long, float or double,"
                      + " a MemorySegment or a ByteBuffer)")
                  .formatted(index, row.getClass().getTypeName()));
    };
  }

  /** Whether all rows are arrays, so that none is memory off the heap. */
  boolean areArrays() {
    return areArrays;
  }

  /** The bytes of each row, if all are arrays. */
  long[] byteSizes() {
    long[] sizes = new long[rows.length];
    int pieces = (sizes.length + ROWS - 1) / ROWS;
    int _ = Pieces.run(piece -> measure(sizes, piece * ROWS), pieces, CopyThreads.MOST, false);
    return sizes;
  }

  private void measure(long[] sizes, int from) {
    int end = Math.min(sizes.length, from + ROWS);
    for (int i = from; i < end; i++) {
      sizes[i] = byteSize(rows[i]);
    }
  }

  private static long byteSize(Object array) {
    return switch (array) {
      case float[] floats -> (long) Float.BYTES * floats.length;
      case double[] doubles -> (long) Double.BYTES * doubles.length;
      case byte[] bytes -> bytes.length;
      case int[] ints -> (long) Integer.BYTES * ints.length;
      case long[] longs -> (long) Long.BYTES * longs.length;
      case short[] shorts -> (long) Short.BYTES * shorts.length;
      case char[] chars -> (long) Character.BYTES * chars.length;
      default -> throw new AssertionError(array);
    };
  }

  @Override
  public MemorySegment get(int index) {
    Object row = rows[index];
    return switch (row) {
      case float[] array -> MemorySegment.ofArray(array);
      case double[] array -> MemorySegment.ofArray(array);
      case byte[] array -> MemorySegment.ofArray(array);
      case int[] array -> MemorySegment.ofArray(array);
      case long[] array -> MemorySegment.ofArray(array);
      case short[] array -> MemorySegment.ofArray(array);
      case char[] array -> MemorySegment.ofArray(array);
      case MemorySegment segment -> segment;
      default -> throw new AssertionError(row);
    };
  }

  @Override
  public int size() {
    return rows.length;
  }
}

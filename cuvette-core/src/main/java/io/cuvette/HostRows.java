package io.cuvette;

import io.cuvette.internal.hostcopy.ArrayRows;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;

/**
 * Rows of the host as segments, for {@link Buffer#gatherFrom} and {@link Buffer#scatterTo}: the
 * lists make a segment when it is read, so that a million rows cost no million objects. They are
 * immutable, but see what is written to the rows. Stateless.
 */
public final class HostRows {
  private HostRows() {}

  /**
   * {@return the rows of a matrix of bytes as segments}
   *
   * @param rows the rows, which may differ in length
   */
  public static List<MemorySegment> of(byte[][] rows) {
    return of((Object[]) rows);
  }

  /**
   * {@return the rows of a matrix of chars as segments}
   *
   * @param rows the rows, which may differ in length
   */
  public static List<MemorySegment> of(char[][] rows) {
    return of((Object[]) rows);
  }

  /**
   * {@return the rows of a matrix of shorts as segments}
   *
   * @param rows the rows, which may differ in length
   */
  public static List<MemorySegment> of(short[][] rows) {
    return of((Object[]) rows);
  }

  /**
   * {@return the rows of a matrix of ints as segments}
   *
   * @param rows the rows, which may differ in length
   */
  public static List<MemorySegment> of(int[][] rows) {
    return of((Object[]) rows);
  }

  /**
   * {@return the rows of a matrix of longs as segments}
   *
   * @param rows the rows, which may differ in length
   */
  public static List<MemorySegment> of(long[][] rows) {
    return of((Object[]) rows);
  }

  /**
   * {@return the rows of a matrix of floats as segments}
   *
   * @param rows the rows, which may differ in length
   */
  public static List<MemorySegment> of(float[][] rows) {
    return of((Object[]) rows);
  }

  /**
   * {@return the rows of a matrix of doubles as segments}
   *
   * @param rows the rows, which may differ in length
   */
  public static List<MemorySegment> of(double[][] rows) {
    return of((Object[]) rows);
  }

  /**
   * {@return arrays, byte buffers from their present position to their limit, and segments as
   * segments}
   *
   * @param rows arrays of byte, char, short, int, long, float or double, {@code ByteBuffer}s and
   *     {@code MemorySegment}s, also mixed
   * @throws IllegalArgumentException for a row of another type, naming it
   */
  public static List<MemorySegment> of(List<?> rows) {
    return of(Objects.requireNonNull(rows, "rows").toArray());
  }

  private static List<MemorySegment> of(Object[] rows) {
    return new ArrayRows(Objects.requireNonNull(rows, "rows"));
  }
}

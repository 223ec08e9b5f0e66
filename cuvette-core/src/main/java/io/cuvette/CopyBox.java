package io.cuvette;

import java.util.Objects;

/**
 * Which bytes a copy of two or three dimensions reads and writes: rows of some bytes, one after the
 * other in a layer, and layers one after the other. On each side rows and layers can lie apart. All
 * numbers are bytes, rows or layers; elements are the caller's part. Immutable.
 *
 * <pre>{@code
 * // the left half of an image of 1080 rows of 4096 bytes, packed
 * packed.copyFrom(image, CopyBox.of(2048, 1080).withSource(0, 4096), stream);
 * }</pre>
 *
 * @param width the bytes of a row, &gt;= 0
 * @param height the rows of a layer, &gt;= 0
 * @param depth the layers, &gt;= 0
 * @param source where the bytes are that are read
 * @param target where the bytes are that are written
 */
public record CopyBox(long width, long height, long depth, Side source, Side target) {

  /**
   * Where the rows are in a buffer or a segment.
   *
   * @param offset where the first row begins, in bytes from the start, &gt;= 0
   * @param pitch the bytes from one row to the next, &gt;= the width
   * @param rows the rows from one layer to the next, &gt;= the height
   */
  public record Side(long offset, long pitch, long rows) {}

  /**
   * A box.
   *
   * @throws IllegalArgumentException if a number is negative, a pitch less than the width, the rows
   *     from layer to layer fewer than the height, or the last byte behind 2^63
   */
  public CopyBox {
    Objects.requireNonNull(source, "source");
    Objects.requireNonNull(target, "target");
    check("width", width, 0);
    check("height", height, 0);
    check("depth", depth, 0);
    check("source", source, width, height, depth);
    check("target", target, width, height, depth);
  }

  /**
   * {@return a box of one layer whose rows follow each other without gaps on both sides}
   *
   * @param width the bytes of a row, &gt;= 0
   * @param height the number of rows, &gt;= 0
   */
  public static CopyBox of(long width, long height) {
    return of(width, height, 1);
  }

  /**
   * {@return a box whose rows and layers follow each other without gaps on both sides}
   *
   * @param width the bytes of a row, &gt;= 0
   * @param height the rows of a layer, &gt;= 0
   * @param depth the layers, &gt;= 0
   */
  public static CopyBox of(long width, long height, long depth) {
    Side packed = new Side(0, width, height);
    return new CopyBox(width, height, depth, packed, packed);
  }

  /**
   * {@return the same with another side that is read, whose layers follow each other without gaps}
   *
   * @param offset where the first row begins, in bytes
   * @param pitch the bytes from one row to the next
   */
  public CopyBox withSource(long offset, long pitch) {
    return withSource(offset, pitch, height);
  }

  /**
   * {@return the same with another side that is read}
   *
   * @param offset where the first row begins, in bytes
   * @param pitch the bytes from one row to the next
   * @param rows the rows from one layer to the next
   */
  public CopyBox withSource(long offset, long pitch, long rows) {
    return new CopyBox(width, height, depth, new Side(offset, pitch, rows), target);
  }

  /**
   * {@return the same with another side that is written, whose layers follow each other without
   * gaps}
   *
   * @param offset where the first row begins, in bytes
   * @param pitch the bytes from one row to the next
   */
  public CopyBox withTarget(long offset, long pitch) {
    return withTarget(offset, pitch, height);
  }

  /**
   * {@return the same with another side that is written}
   *
   * @param offset where the first row begins, in bytes
   * @param pitch the bytes from one row to the next
   * @param rows the rows from one layer to the next
   */
  public CopyBox withTarget(long offset, long pitch, long rows) {
    return new CopyBox(width, height, depth, source, new Side(offset, pitch, rows));
  }

  /** {@return the number of bytes that are copied} */
  public long byteSize() {
    return width * height * depth;
  }

  private static void check(String name, long value, long least) {
    if (value < least) {
      throw new IllegalArgumentException("%s: %d (expected: >= %d)".formatted(name, value, least));
    }
  }

  private static void check(String name, Side side, long width, long height, long depth) {
    check(name + " offset", side.offset, 0);
    check(name + " pitch", side.pitch, width);
    check(name + " rows", side.rows, height);
    try {
      long all = Math.multiplyExact(Math.multiplyExact(side.rows, depth), side.pitch);
      long _ = Math.addExact(side.offset, all);
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException(
          "%s: %s with %d layers (expected: less than 2^63 bytes)".formatted(name, side, depth), e);
    }
  }
}

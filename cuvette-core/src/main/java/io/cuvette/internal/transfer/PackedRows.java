package io.cuvette.internal.transfer;

import io.cuvette.driver.BoxCopy;

/**
 * Where bytes that are packed in a chunk lie in a buffer: in rows that are apart. Immutable.
 *
 * @param side where the rows are; its address is an offset in the buffer
 * @param width the bytes of a row
 * @param height the rows of a layer
 * @param depth the layers; 1 if they would be of one row each, which are the rows of one layer
 */
public record PackedRows(BoxCopy.Side side, long width, long height, long depth) {

  /** Bytes that one call of the driver copies. */
  @FunctionalInterface
  interface Run {
    /**
     * Copies.
     *
     * @param packed from which of the packed bytes on
     * @param apart the same bytes in the buffer
     * @param bytes those of a row
     * @param rows the rows of a layer
     * @param layers the layers
     */
    void copy(long packed, BoxCopy.Side apart, long bytes, long rows, long layers);
  }

  /** One row, from the start of a buffer on. */
  static PackedRows of(long bytes) {
    return new PackedRows(new BoxCopy.Side(0, bytes, 1), bytes, 1, 1);
  }

  /** Where a row is in the buffer. */
  long offsetOf(long row) {
    return side.addressOf(row, height);
  }

  /**
   * Divides packed bytes: parts of rows, rows of a part of a layer, layers.
   *
   * @param together whether one call of the driver copies several rows
   */
  void split(long from, long bytes, boolean together, Run run) {
    long at = from;
    long end = from + bytes;
    while (at < end) {
      long row = at / width;
      long inRow = at % width;
      long left = end - at;
      long done;
      if (!together || inRow != 0 || left < width) {
        done = Math.min(left, width - inRow);
        run.copy(at, sideAt(row, inRow), done, 1, 1);
      } else if (row % height != 0 || left < width * height) {
        long rows = Math.min(left / width, height - row % height);
        done = rows * width;
        run.copy(at, sideAt(row, 0), width, rows, 1);
      } else {
        long layers = left / (width * height);
        done = layers * height * width;
        run.copy(at, sideAt(row, 0), width, height, layers);
      }
      at += done;
    }
  }

  /** Whether a call of the driver can have several of the rows. */
  boolean isForDriver() {
    return side.pitch() <= BoxCopy.MAX_PITCH;
  }

  private BoxCopy.Side sideAt(long row, long inRow) {
    return new BoxCopy.Side(side.addressOf(row, height) + inRow, side.pitch(), side.rows());
  }
}

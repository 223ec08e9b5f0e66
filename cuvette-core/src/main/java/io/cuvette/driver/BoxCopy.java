package io.cuvette.driver;

import java.util.Objects;

/**
 * A copy of rows that lie apart, in layers that lie apart (CUDA_MEMCPY3D, of unified memory). Rows
 * follow each other by address. Immutable.
 *
 * @param target where bytes are written
 * @param source where bytes are read
 * @param width the bytes of a row
 * @param height the rows of a layer
 * @param depth the layers
 */
public record BoxCopy(Side target, Side source, long width, long height, long depth) {

  /**
   * One side of a copy.
   *
   * @param address the first byte
   * @param pitch the bytes from one row to the next
   * @param rows the rows from one layer to the next
   */
  public record Side(long address, long pitch, long rows) {
    /**
     * {@return where a row is}
     *
     * @param row the row, counted through all layers
     * @param height the rows of a layer
     */
    public long addressOf(long row, long height) {
      return address + (row / height * rows + row % height) * pitch;
    }
  }

  /** A copy. */
  public BoxCopy {
    Objects.requireNonNull(target, "target");
    Objects.requireNonNull(source, "source");
  }

  /** CU_DEVICE_ATTRIBUTE_MAX_PITCH, which is the same for all devices. */
  public static final long MAX_PITCH = Integer.MAX_VALUE;

  /** {@return whether one call of the driver takes it, or its pitches are too large for that} */
  public boolean isForDriver() {
    return target.pitch <= MAX_PITCH && source.pitch <= MAX_PITCH;
  }

  /** {@return the number of rows in all layers} */
  public long allRows() {
    return height * depth;
  }

  /** {@return the number of bytes that are copied} */
  public long byteSize() {
    return width * allRows();
  }

  /**
   * {@return how many bytes it is from the first to behind the last on one side}
   *
   * @param side the target or the source
   */
  public long span(Side side) {
    Objects.requireNonNull(side, "side");
    return byteSize() == 0 ? 0 : side.addressOf(allRows() - 1, height) - side.address + width;
  }

  /** {@return the same copy with as few rows and layers as it can be said with} */
  public BoxCopy merged() {
    if (depth > 1 && (height == 1 || (isWithoutGap(target) && isWithoutGap(source)))) {
      return new BoxCopy(asRows(target), asRows(source), width, allRows(), 1).merged();
    }
    boolean isOneRow = height == 1 || (target.pitch == width && source.pitch == width);
    if (depth > 1 || !isOneRow) {
      return this;
    }
    long all = width * height;
    return new BoxCopy(
        new Side(target.address, all, 1), new Side(source.address, all, 1), all, 1, 1);
  }

  /** Whether layers follow each other as rows do. */
  private boolean isWithoutGap(Side side) {
    return side.rows == height;
  }

  private Side asRows(Side side) {
    return new Side(side.address, height == 1 ? side.pitch * side.rows : side.pitch, allRows());
  }

  /**
   * {@return how many bytes the first rows that have some in common have so; 0 if there is none}
   */
  public long commonBytes() {
    if (byteSize() == 0
        || target.address + span(target) <= source.address
        || source.address + span(source) <= target.address) {
      return 0;
    }
    long to = 0;
    long from = 0;
    while (to < allRows() && from < allRows()) {
      long apart = target.addressOf(to, height) - source.addressOf(from, height);
      if (Math.abs(apart) < width) {
        return width - Math.abs(apart);
      }
      if (apart < 0) {
        to++;
      } else {
        from++;
      }
    }
    return 0;
  }
}

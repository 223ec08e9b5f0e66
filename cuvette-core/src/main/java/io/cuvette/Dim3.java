package io.cuvette;

import io.cuvette.internal.base.Checks;

/**
 * An extent in three dimensions, such as the blocks of a grid or the threads of a block (dim3).
 * Immutable.
 *
 * @param x the extent in x, 1 to 2^31 − 1
 * @param y the extent in y, 1 to 2^31 − 1
 * @param z the extent in z, 1 to 2^31 − 1
 */
public record Dim3(int x, int y, int z) {
  /** 1 in all dimensions. */
  public static final Dim3 ONE = new Dim3(1, 1, 1);

  /**
   * An extent of three numbers.
   *
   * @throws IllegalArgumentException if one of them is less than 1
   */
  public Dim3 {
    Checks.inRange("x", x, 1, Integer.MAX_VALUE);
    Checks.inRange("y", y, 1, Integer.MAX_VALUE);
    Checks.inRange("z", z, 1, Integer.MAX_VALUE);
  }

  /**
   * {@return an extent in x alone}
   *
   * @param x the extent, 1 to 2^31 − 1
   * @throws IllegalArgumentException if it is outside that range
   */
  public static Dim3 of(long x) {
    return of(x, 1, 1);
  }

  /**
   * {@return an extent in x and y}
   *
   * @param x the extent in x, 1 to 2^31 − 1
   * @param y the extent in y, 1 to 2^31 − 1
   * @throws IllegalArgumentException if one of them is outside that range
   */
  public static Dim3 of(long x, long y) {
    return of(x, y, 1);
  }

  /**
   * {@return an extent in x, y and z}
   *
   * @param x the extent in x, 1 to 2^31 − 1
   * @param y the extent in y, 1 to 2^31 − 1
   * @param z the extent in z, 1 to 2^31 − 1
   * @throws IllegalArgumentException if one of them is outside that range
   */
  public static Dim3 of(long x, long y, long z) {
    return new Dim3(
        (int) Checks.inRange("x", x, 1, Integer.MAX_VALUE),
        (int) Checks.inRange("y", y, 1, Integer.MAX_VALUE),
        (int) Checks.inRange("z", z, 1, Integer.MAX_VALUE));
  }

  /** {@return the product of the three, saturated at 2^63 − 1} */
  public long count() {
    long plane = (long) x * y;
    return Math.multiplyHigh(plane, z) == 0 && plane * z >= 0 ? plane * z : Long.MAX_VALUE;
  }

  @Override
  public String toString() {
    return "(%d, %d, %d)".formatted(x, y, z);
  }
}

package io.cuvette.internal.pinnedpool;

/**
 * Size classes of blocks that are never cut: multiples of 512 bytes up to 4 KiB, above that 8
 * classes for each doubling, so that a block is less than 12.5 % larger than the requested size.
 * Stateless.
 *
 * <pre>
 *   512 1024 1536 2048 2560 3072 3584 4096 │ 4608 … 8192 │ 9216 … 16384 │ 18432 …
 *             steps of 512                 │ of 512      │ of 1024      │ of 2048
 * </pre>
 */
public final class SizeClasses {
  /** How many classes there are; the last holds {@link #MAX_BYTES}. */
  public static final int COUNT = 416;

  /** The largest size that has a class: the largest multiple of 512 that a long holds. */
  public static final long MAX_BYTES = Long.MAX_VALUE - 511;

  private static final int UNIT_SHIFT = 9;
  private static final int STEP_BITS = 3;
  private static final int STEPS = 1 << STEP_BITS;

  private SizeClasses() {}

  /**
   * The class of the smallest blocks that hold so many bytes.
   *
   * @param bytes 1 to {@link #MAX_BYTES}
   */
  public static int classOf(long bytes) {
    if (bytes <= 0 || bytes > MAX_BYTES) {
      throw new IllegalArgumentException("bytes: " + bytes + " (expected: 1 to " + MAX_BYTES + ")");
    }
    long lastUnit = (bytes - 1) >>> UNIT_SHIFT;
    if (lastUnit < STEPS) {
      return (int) lastUnit;
    }
    int doubling = 63 - STEP_BITS - Long.numberOfLeadingZeros(lastUnit);
    return (doubling << STEP_BITS) + (int) (lastUnit >>> doubling);
  }

  /**
   * Size of the blocks of a class.
   *
   * @param index 0 to {@link #COUNT} - 1; larger classes have larger blocks
   */
  public static long classBytes(int index) {
    if (index < 0 || index >= COUNT) {
      throw new IllegalArgumentException(
          "index: " + index + " (expected: 0 to " + (COUNT - 1) + ")");
    }
    if (index == COUNT - 1) {
      return MAX_BYTES; // the next multiple of its step does not fit into a long
    }
    if (index < STEPS) {
      return (index + 1L) << UNIT_SHIFT;
    }
    int doubling = (index >>> STEP_BITS) - 1;
    long steps = (index & (STEPS - 1)) + (STEPS + 1L);
    return steps << (doubling + UNIT_SHIFT);
  }
}

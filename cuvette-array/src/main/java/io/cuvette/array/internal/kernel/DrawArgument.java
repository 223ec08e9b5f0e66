package io.cuvette.array.internal.kernel;

import java.lang.foreign.MemorySegment;

/**
 * Some random numbers: {@code Draw} of common.cu.
 *
 * @param count how many numbers
 * @param key the seed
 * @param counter the number of the first block of the generator
 * @param outOffset where the first number goes, in bytes
 * @param low the least integer, or the bits of the mean as a double
 * @param extent how many integers there are, 0 for 2<sup>64</sup>; or the bits of the standard
 *     deviation as a double
 */
public record DrawArgument(
    long count, long key, long counter, long outOffset, long low, long extent) {
  /** The size of the structure in bytes. */
  public static final int BYTES = 48;

  /** The structure. */
  public MemorySegment structure() {
    return MemorySegment.ofArray(new long[] {count, key, counter, outOffset, low, extent});
  }

  /** Reads the structure. */
  public static DrawArgument of(MemorySegment s) {
    long[] v = LoopArgument.get(s, 0, BYTES / Long.BYTES);
    return new DrawArgument(v[0], v[1], v[2], v[3], v[4], v[5]);
  }
}

package io.cuvette.array.internal.twin;

/**
 * Philox 4x32-10, a generator of random numbers by a counter: Salmon, Moraes, Dror, Shaw, "Parallel
 * random numbers: as easy as 1, 2, 3", SC 2011. A block of 128 bits is a function of a counter and
 * a key alone. Stateless.
 */
public final class Philox {
  private static final int ROUNDS = 10;
  private static final long MULTIPLIER_0 = 0xD2511F53L;
  private static final long MULTIPLIER_1 = 0xCD9E8D57L;
  private static final int WEYL_0 = 0x9E3779B9;
  private static final int WEYL_1 = 0xBB67AE85;

  private Philox() {}

  /**
   * The block of a counter.
   *
   * @param block the counter in four words, the lowest first; becomes the block
   * @param key0 the lower half of the key
   * @param key1 the upper half
   */
  public static void block(int[] block, int key0, int key1) {
    int k0 = key0;
    int k1 = key1;
    for (int round = 0; round < ROUNDS; round++) {
      long product0 = MULTIPLIER_0 * (block[0] & 0xFFFF_FFFFL);
      long product1 = MULTIPLIER_1 * (block[2] & 0xFFFF_FFFFL);
      block[0] = (int) (product1 >>> 32) ^ block[1] ^ k0;
      block[1] = (int) product1;
      block[2] = (int) (product0 >>> 32) ^ block[3] ^ k1;
      block[3] = (int) product0;
      k0 += WEYL_0;
      k1 += WEYL_1;
    }
  }

  /** The block of a counter of 64 bits, under a key of 64 bits. */
  static void block(int[] block, long counter, long key) {
    block[0] = (int) counter;
    block[1] = (int) (counter >>> 32);
    block[2] = 0;
    block[3] = 0;
    block(block, (int) key, (int) (key >>> 32));
  }
}

package io.cuvette.internal.base;

/**
 * Spreads threads over places of which each belongs to some of them: what nobody else visits costs
 * them nothing, and no place belongs to a thread that could end with it. Stateless.
 */
public final class Spread {
  /** How many places there are for all threads that run at once: a power of 2. */
  public static final int PLACES =
      Integer.highestOneBit(Math.max(4, 4 * Runtime.getRuntime().availableProcessors()) - 1) << 1;

  private static final long GOLDEN = 0x9E3779B97F4A7C15L;

  private Spread() {}

  /**
   * The place of this thread, the same each time.
   *
   * @param places how many there are, a power of 2
   */
  public static int mine(int places) {
    long spread = Thread.currentThread().threadId() * GOLDEN;
    return (int) (spread >>> 40) & (places - 1);
  }
}

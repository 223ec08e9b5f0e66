package io.cuvette.testkit.support;

/** Sizes that the library or a driver treats specially, in bytes. Stateless. */
public final class Sizes {
  public static final long KIB = 1L << 10;
  public static final long MIB = 1L << 20;
  public static final long GIB = 1L << 30;

  /** The granularity of pools: sizes are rounded up to multiples, and no block is smaller. */
  public static final long UNIT = 512;

  /** A size that is no multiple of the granularity; its block has two units. */
  public static final long UNEVEN = 1000;

  /** A page of the device: the driver takes plain memory in multiples, which small blocks share. */
  public static final long PAGE = 2 * MIB;

  /** What a pool of the driver grows by. */
  public static final long POOL_STEP = 32 * MIB;

  private Sizes() {}
}

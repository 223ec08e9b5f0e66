package io.cuvette.driver;

/** Which granularity of memory is meant (CUmemAllocationGranularity_flags). */
public final class MemGranularity {
  /** What every size must be a multiple of. */
  public static final int MINIMUM = 0;

  /** What sizes should be a multiple of, for the speed of the memory. */
  public static final int RECOMMENDED = 1;

  private MemGranularity() {}
}

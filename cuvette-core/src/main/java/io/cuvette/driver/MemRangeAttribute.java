package io.cuvette.driver;

/** The attributes of a range of managed memory (CUmem_range_attribute). */
public final class MemRangeAttribute {
  /** Whether the range is advised to be read mostly: 0 or 1. */
  public static final int READ_MOSTLY = 1;

  /** The device that the range should be on. */
  public static final int PREFERRED_LOCATION = 2;

  /** The devices for which the range is mapped. */
  public static final int ACCESSED_BY = 3;

  /** The device that the range was prefetched to last. */
  public static final int LAST_PREFETCH_LOCATION = 4;

  /** The {@link MemLocationType} of the preferred location. */
  public static final int PREFERRED_LOCATION_TYPE = 5;

  /** The {@link MemLocationType} of the last prefetch. */
  public static final int LAST_PREFETCH_LOCATION_TYPE = 7;

  private MemRangeAttribute() {}
}

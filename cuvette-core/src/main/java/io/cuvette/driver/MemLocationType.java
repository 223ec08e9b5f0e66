package io.cuvette.driver;

/** The type of a place where memory is (CUmemLocationType). */
public final class MemLocationType {
  /** No place in particular. */
  public static final int NONE = 0;

  /** A device, by its number. */
  public static final int DEVICE = 1;

  /** The host; the number is ignored. */
  public static final int HOST = 2;

  /** A NUMA node of the host, by its number. */
  public static final int HOST_NUMA = 3;

  /** The NUMA node of the host that is nearest to the calling thread; the number is ignored. */
  public static final int HOST_NUMA_CURRENT = 4;

  /** The host where the number of a device is expected (CU_DEVICE_CPU). */
  public static final int HOST_AS_DEVICE = -1;

  private MemLocationType() {}
}

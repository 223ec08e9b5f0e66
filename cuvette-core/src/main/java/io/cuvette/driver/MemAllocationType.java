package io.cuvette.driver;

/** The type of the memory of a pool of the driver (CUmemAllocationType). */
public final class MemAllocationType {
  /** Memory that stays where it is: of a device, or page-locked memory of the host. */
  public static final int PINNED = 1;

  /** Managed memory, which moves to who uses it. */
  public static final int MANAGED = 2;

  private MemAllocationType() {}
}

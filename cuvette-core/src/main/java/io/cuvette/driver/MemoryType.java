package io.cuvette.driver;

/** Where the memory at an address is (CUmemorytype). */
public final class MemoryType {
  /** In host memory. */
  public static final int HOST = 1;

  /** In the memory of a device, or managed. */
  public static final int DEVICE = 2;

  private MemoryType() {}
}

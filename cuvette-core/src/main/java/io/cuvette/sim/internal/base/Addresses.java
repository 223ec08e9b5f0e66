package io.cuvette.sim.internal.base;

/** How addresses of devices differ from those of the host, and from handles. Stateless. */
public final class Addresses {
  /** The most devices there can be: what the simulated addresses have room for. */
  public static final int MAX_DEVICES = 32;

  /** Above this bit an address has the number of its device, from 1. */
  public static final int DEVICE_SHIFT = 56;

  /** What addresses that are reserved have there. */
  private static final long VIRTUAL = 0x30;

  /** The first address that can be reserved. */
  public static final long VIRTUAL_START = VIRTUAL << DEVICE_SHIFT;

  /** How many bytes of addresses can be reserved: what a GPU has. */
  public static final long VIRTUAL_BYTES = 1L << 47;

  private Addresses() {}

  /** Whether an address is one of those that are reserved before memory is mapped there. */
  public static boolean isVirtual(long address) {
    return address >>> DEVICE_SHIFT == VIRTUAL;
  }

  /** The device an address would belong to, -1 for an address of the host or a handle. */
  public static int deviceOf(long address) {
    int device = (int) (address >>> DEVICE_SHIFT) - 1;
    return device < MAX_DEVICES ? device : -1;
  }
}

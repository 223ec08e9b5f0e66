package io.cuvette.sim.internal.base;

/** How addresses of devices differ from those of the host, and from handles. Stateless. */
public final class Addresses {
  /** The most devices there can be: what the simulated addresses have room for. */
  public static final int MAX_DEVICES = 32;

  /** Above this bit an address has the number of its device, from 1. */
  public static final int DEVICE_SHIFT = 56;

  private Addresses() {}

  /** The device an address would belong to, -1 for an address of the host or a handle. */
  public static int deviceOf(long address) {
    int device = (int) (address >>> DEVICE_SHIFT) - 1;
    return device < MAX_DEVICES ? device : -1;
  }
}

package io.cuvette.internal.block;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PointerAttribute;
import io.cuvette.internal.session.Device;

/** What the driver knows of addresses, whoever allocated there. Stateless. */
public final class Addresses {
  private Addresses() {}

  /**
   * Whether memory of unknown origin is of a pool that a device other than its own cannot access.
   */
  public static boolean deniesAccess(Device owner, long address, Device other) {
    long pool = poolOf(owner, address);
    return pool != 0 && deniesAccess(other, pool);
  }

  /**
   * Whether a device has no access to a pool; memory of it that is in use keeps the pool from being
   * destroyed meanwhile.
   */
  public static boolean deniesAccess(Device other, long pool) {
    return other
            .session()
            .driver()
            .pools()
            .memPoolGetAccess(pool, MemLocationType.DEVICE, other.id())
        != MemAccessFlags.READ_WRITE;
  }

  /** The handle of the pool that memory of a device is from; 0 if it is from none. */
  public static long poolOf(Device owner, long address) {
    try {
      return attribute(owner, PointerAttribute.MEMPOOL_HANDLE, address);
    } catch (CudaException e) {
      return 0; // what is wrong with the memory, the copy will tell
    }
  }

  /** One attribute of an address (cuPointerGetAttribute). */
  public static long attribute(Device device, int attribute, long address) {
    return device.ask(
        driver -> driver.memory().pointerGetAttribute(device.id(), attribute, address));
  }
}

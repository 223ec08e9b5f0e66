package io.cuvette.internal.block;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.MemoryType;
import io.cuvette.driver.PointerAttribute;
import io.cuvette.internal.session.Device;

/** What the driver knows of addresses, whoever allocated there. Stateless. */
public final class Addresses {
  private Addresses() {}

  /** Whether memory of unknown origin is of a pool, or mapped, and kept from another device. */
  public static boolean deniesAccess(Device owner, long address, Device other) {
    long pool = poolOf(owner, address);
    return pool != 0
        ? deniesAccess(other, pool)
        : !isPlain(owner, address) && mappedAccess(other, address) != MemAccessFlags.READ_WRITE;
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

  /** Whether memory of unknown origin is neither of a pool nor mapped (cuMemMap) for its device. */
  public static boolean isPlain(Device owner, long address) {
    return poolOf(owner, address) == 0 && mappedAccess(owner, address) == MemAccessFlags.NONE;
  }

  private static int mappedAccess(Device of, long address) {
    try {
      return of.ask(
          driver -> driver.virtual().memGetAccess(address, MemLocationType.DEVICE, of.id()));
    } catch (CudaException e) {
      return MemAccessFlags.NONE; // as others answer for memory that was never mapped
    }
  }

  /** The handle of the pool that memory of a device is from; 0 if it is from none. */
  public static long poolOf(Device owner, long address) {
    try {
      return attribute(owner, PointerAttribute.MEMPOOL_HANDLE, address);
    } catch (CudaException e) {
      return 0; // what is wrong with the memory, the copy will tell
    }
  }

  /** Whether the driver knows an address as page-locked memory of the host. */
  public static boolean isPageLocked(Device device, long address) {
    try {
      return attribute(device, PointerAttribute.MEMORY_TYPE, address) == MemoryType.HOST;
    } catch (CudaException e) {
      if (e.status() != CudaStatus.INVALID_VALUE) {
        throw e;
      }
      return false;
    }
  }

  /** One attribute of an address (cuPointerGetAttribute). */
  public static long attribute(Device device, int attribute, long address) {
    return device.ask(
        driver -> driver.memory().pointerGetAttribute(device.id(), attribute, address));
  }
}

package io.cuvette.driver;

/**
 * What memory without an address is made of (CUmemAllocationProp). It is never compressed, and of
 * {@link MemAllocationType#PINNED}: it stays where it is. Immutable.
 *
 * @param handleTypes how other processes may import it, by {@link MemHandleType}
 * @param locationType where it is, by {@link MemLocationType}: a device, the host or a NUMA node
 * @param locationId the device or node; ignored for the host
 */
public record AllocationProperties(int handleTypes, int locationType, int locationId) {

  /**
   * {@return the properties of memory of a device}
   *
   * @param device the device, from 0
   * @param handleTypes how other processes may import it, by {@link MemHandleType}
   */
  public static AllocationProperties ofDevice(int device, int handleTypes) {
    return new AllocationProperties(handleTypes, MemLocationType.DEVICE, device);
  }
}

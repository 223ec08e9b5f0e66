package io.cuvette.internal.paged;

import io.cuvette.DeviceAttribute;
import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemGranularity;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.VirtualCalls;
import io.cuvette.internal.session.Device;
import java.util.List;

/**
 * How memory of one device is mapped into reserved addresses. Immutable.
 *
 * @param device whose memory it is
 * @param peers the numbers of the other devices that can access it
 * @param handleTypes how other processes may import it, by {@link MemHandleType}
 * @param unit what all sizes and addresses are multiples of, in bytes
 */
public record Paging(Device device, List<Integer> peers, int handleTypes, long unit) {

  /**
   * Asks the driver for the unit, for memory of this process alone.
   *
   * @throws UnsupportedOperationException if the device cannot do it, with what to use instead
   * @throws IllegalArgumentException if a peer has no access
   */
  public static Paging of(Device device, List<Integer> peers) {
    return of(device, peers, MemHandleType.NONE);
  }

  /**
   * Asks the driver for the unit.
   *
   * @throws UnsupportedOperationException if the device cannot do it, with what to use instead
   * @throws IllegalArgumentException if a peer has no access
   */
  public static Paging of(Device device, List<Integer> peers, int handleTypes) {
    if (device.attribute(DeviceAttribute.VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED) == 0) {
      throw new UnsupportedOperationException(
          device + " has no virtual memory management (expected: a MemoryPool instead)");
    }
    if (handleTypes != MemHandleType.NONE
        && device.attribute(DeviceAttribute.HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) == 0) {
      throw new UnsupportedOperationException(
          device
              + " cannot export virtual memory by file descriptors (expected: a pool that is not"
              + " exportable, or a DeviceMemoryResource with ipcEnabled)");
    }
    List<Integer> others = peers.stream().distinct().filter(id -> id != device.id()).toList();
    for (int peer : others) {
      checkPeer(device, peer);
    }
    AllocationProperties properties = AllocationProperties.ofDevice(device.id(), handleTypes);
    long unit =
        device.ask(driver ->
            driver.virtual().memGetAllocationGranularity(properties, MemGranularity.RECOMMENDED));
    return new Paging(device, others, handleTypes, unit);
  }

  private static void checkPeer(Device device, int peer) {
    if (!device.ask(driver -> driver.devices().deviceCanAccessPeer(peer, device.id()))) {
      throw new IllegalArgumentException(
          "peers: device %d cannot access memory of %s".formatted(peer, device));
    }
  }

  /** The properties of the memory. */
  public AllocationProperties properties() {
    return AllocationProperties.ofDevice(device.id(), handleTypes);
  }

  /** Whether other processes may import it. */
  public boolean isExportable() {
    return handleTypes != MemHandleType.NONE;
  }

  /** All devices that can access it: its own first. */
  public int[] accessors() {
    int[] ids = new int[peers.size() + 1];
    ids[0] = device.id();
    for (int i = 0; i < peers.size(); i++) {
      ids[i + 1] = peers.get(i);
    }
    return ids;
  }

  /** Whether a device can access it. */
  public boolean allows(Device other) {
    return other == device || peers.contains(other.id());
  }

  /** Asks the driver whether something is mapped at an address. */
  public boolean isMapped(VirtualCalls calls, long at) {
    try {
      int _ = calls.memGetAccess(at, MemLocationType.DEVICE, device.id());
      return true;
    } catch (CudaException e) {
      if (e.status() != CudaStatus.INVALID_VALUE) {
        throw e;
      }
      return false;
    }
  }

  /** The bytes of whole units that hold some bytes. */
  public long up(long bytes) {
    return (bytes + unit - 1) / unit * unit;
  }
}

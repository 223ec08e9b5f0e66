package io.cuvette.driver;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Driver calls about memory: allocation, managed memory, attributes of pointers. Thread-safe. */
public interface MemoryCalls {

  /**
   * Allocates device memory, at least 256-byte aligned (cuMemAlloc). {@code bytes} 0 is an error.
   */
  long memAlloc(int device, long bytes);

  /** Frees device or managed memory; may wait for the device (cuMemFree). */
  void memFree(int device, long address);

  /**
   * Allocates managed memory (cuMemAllocManaged).
   *
   * @param flags CUmemAttach_flags: 1 global, 2 host
   * @return the memory as the host sees it; its address is also the device's; lives until {@link
   *     #memFree}
   */
  MemorySegment memAllocManaged(int device, long bytes, int flags);

  /**
   * Allocates page-locked host memory (cuMemHostAlloc).
   *
   * @param flags 1 portable, 2 device-mapped, 4 write-combined
   * @return the memory; its address is also valid on the device; lives until {@link #memFreeHost}
   */
  MemorySegment memHostAlloc(int device, long bytes, int flags);

  /** Frees page-locked host memory (cuMemFreeHost). */
  void memFreeHost(int device, long address);

  /**
   * Host-accessible memory as a segment that dies with the arena. No driver call on a real device;
   * it is here because only a driver may turn an address into memory.
   */
  MemorySegment hostView(int device, long address, long bytes, Arena arena);

  /**
   * Moves managed memory to a location in stream order (cuMemPrefetchAsync).
   *
   * @param locationType CUmemLocationType: 1 device, 2 host, 3 host NUMA node, 4 current NUMA node
   * @param locationId device or node; 0 where it has no meaning
   */
  void memPrefetchAsync(
      int device, long address, long bytes, int locationType, int locationId, long stream);

  /**
   * Advises on the use of managed memory, CUmem_advise 1 to 6 (cuMemAdvise). Locations as in
   * prefetch.
   */
  void memAdvise(
      int device, long address, long bytes, int advice, int locationType, int locationId);

  /** One 4-byte CUmem_range_attribute of managed memory (cuMemRangeGetAttribute). */
  int memRangeGetAttribute(int device, int attribute, long address, long bytes);

  /**
   * A CUmem_range_attribute that is a list, as accessed-by is: devices, -1 for the host, and -2 for
   * places that stay empty (cuMemRangeGetAttribute).
   */
  int[] memRangeGetAttributeList(int device, int attribute, long address, long bytes, int count);

  /**
   * One CUpointer_attribute as a long, zero-extended if it is shorter (cuPointerGetAttribute).
   *
   * @throws CudaException INVALID_VALUE if the driver does not know the pointer
   */
  long pointerGetAttribute(int device, int attribute, long address);
}

package io.cuvette.driver;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Driver calls about memory: allocation, managed memory, attributes of pointers. Thread-safe. */
public interface MemoryCalls {

  /**
   * Allocates device memory, at least 256-byte aligned (cuMemAlloc). {@code bytes} 0 is an error.
   *
   * @param device the device, from 0
   * @param bytes the size in bytes, >= 1
   * @return the first address
   * @throws CudaException if the driver reports an error
   */
  long memAlloc(int device, long bytes);

  /**
   * Frees device or managed memory; may wait for the device (cuMemFree).
   *
   * @param device the device, from 0
   * @param address the first address of the memory
   * @throws CudaException if the driver reports an error
   */
  void memFree(int device, long address);

  /**
   * Allocates managed memory (cuMemAllocManaged).
   *
   * @param device the device, from 0
   * @param bytes the size in bytes
   * @param flags CUmemAttach_flags: 1 global, 2 host
   * @return the memory as the host sees it; its address is also the device's; lives until {@link
   *     #memFree}
   * @throws CudaException if the driver reports an error
   */
  MemorySegment memAllocManaged(int device, long bytes, int flags);

  /**
   * Allocates page-locked host memory (cuMemHostAlloc).
   *
   * @param device the device, from 0
   * @param bytes the size in bytes
   * @param flags 1 portable, 2 device-mapped, 4 write-combined
   * @return the memory; its address is also valid on the device; lives until {@link #memFreeHost}
   * @throws CudaException if the driver reports an error
   */
  MemorySegment memHostAlloc(int device, long bytes, int flags);

  /**
   * Frees page-locked host memory (cuMemFreeHost).
   *
   * @param device the device, from 0
   * @param address the first address of the memory
   * @throws CudaException if the driver reports an error
   */
  void memFreeHost(int device, long address);

  /**
   * Page-locks memory of the host that is there already (cuMemHostRegister). It must stay there
   * until {@link #memHostUnregister}.
   *
   * @param device the device, from 0
   * @param memory the native memory; its address is also valid on the device
   * @param flags 1 portable, 2 device-mapped, 4 memory of an I/O device, 8 read-only for devices
   * @throws CudaException HOST_MEMORY_ALREADY_REGISTERED if some of it is page-locked already, or
   *     another error of the driver
   */
  void memHostRegister(int device, MemorySegment memory, int flags);

  /**
   * Makes registered memory pageable again (cuMemHostUnregister).
   *
   * @param device the device, from 0
   * @param address the first address of the memory
   * @throws CudaException HOST_MEMORY_NOT_REGISTERED if no registered memory begins there, or
   *     another error of the driver
   */
  void memHostUnregister(int device, long address);

  /**
   * {@return a segment of memory that the host can access, valid until the arena closes} No driver
   * call on a real device; it is here because only a driver may turn an address into memory.
   *
   * @param device the device, from 0
   * @param address the first address
   * @param bytes the size in bytes
   * @param arena the arena whose end ends the segment
   */
  MemorySegment hostView(int device, long address, long bytes, Arena arena);

  /**
   * Moves managed memory to a location in stream order (cuMemPrefetchAsync).
   *
   * @param device the device, from 0
   * @param address the first address
   * @param bytes the size in bytes
   * @param locationType CUmemLocationType: 1 device, 2 host, 3 host NUMA node, 4 current NUMA node
   * @param locationId device or node; 0 where it has no meaning
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  void memPrefetchAsync(
      int device, long address, long bytes, int locationType, int locationId, long stream);

  /**
   * Advises on the use of managed memory, CUmem_advise 1 to 6 (cuMemAdvise). Locations as in
   * prefetch.
   *
   * @param device the device, from 0
   * @param address the first address
   * @param bytes the size in bytes
   * @param advice CUmem_advise, 1 to 6
   * @param locationType CUmemLocationType: 1 device, 2 host, 3 host NUMA node
   * @param locationId the device or node; 0 where it has no meaning
   * @throws CudaException if the driver reports an error
   */
  void memAdvise(
      int device, long address, long bytes, int advice, int locationType, int locationId);

  /**
   * {@return one 4-byte CUmem_range_attribute of managed memory (cuMemRangeGetAttribute)}
   *
   * @param device the device, from 0
   * @param attribute CUmem_range_attribute
   * @param address the first address
   * @param bytes the size in bytes
   * @throws CudaException if the driver reports an error
   */
  int memRangeGetAttribute(int device, int attribute, long address, long bytes);

  /**
   * {@return a CUmem_range_attribute that is a list, as accessed-by is: devices, -1 for the host,
   * and -2 for places that stay empty (cuMemRangeGetAttribute)}
   *
   * @param device the device, from 0
   * @param attribute CUmem_range_attribute
   * @param address the first address
   * @param bytes the size in bytes
   * @param count the number of places for answers, >= 1
   * @throws CudaException if the driver reports an error
   */
  int[] memRangeGetAttributeList(int device, int attribute, long address, long bytes, int count);

  /**
   * {@return one CUpointer_attribute as a long, zero-extended if it is shorter
   * (cuPointerGetAttribute)}
   *
   * @param device the device, from 0
   * @param attribute CUpointer_attribute
   * @param address any address in the memory
   * @throws CudaException INVALID_VALUE if the driver does not know the pointer
   */
  long pointerGetAttribute(int device, int attribute, long address);
}

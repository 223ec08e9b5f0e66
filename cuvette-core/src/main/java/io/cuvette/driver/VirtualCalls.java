package io.cuvette.driver;

/**
 * Driver calls about virtual memory: ranges of addresses, memory without an address, and which of
 * the one is where in the other. None of them waits for work: what unmaps a range makes sure first
 * that all work on it is done. Memory is there as long as a handle of it or a mapping is; the
 * addresses of a mapping can be used by the devices that have access. Thread-safe.
 */
public interface VirtualCalls {

  /**
   * {@return the number of bytes that sizes and addresses of such memory must be a multiple of
   * (cuMemGetAllocationGranularity)}
   *
   * @param properties the properties of the memory
   * @param option which granularity, by {@link MemGranularity}
   * @throws CudaException if the driver reports an error
   */
  long memGetAllocationGranularity(AllocationProperties properties, int option);

  /**
   * Reserves a range of addresses, at which nothing is mapped (cuMemAddressReserve).
   *
   * @param bytes the size of the range, a multiple of the granularity
   * @param alignment what the first address is a multiple of, a power of 2; 0 for the default
   * @param address where the range should be; the driver may choose another place; 0 for any
   * @return the first address of the range
   * @throws CudaException if the driver reports an error
   */
  long memAddressReserve(long bytes, long alignment, long address);

  /**
   * Gives a range of addresses back, in which nothing is mapped any more (cuMemAddressFree).
   *
   * @param address the first address of the range
   * @param bytes the size with which it was reserved
   * @throws CudaException if the driver reports an error
   */
  void memAddressFree(long address, long bytes);

  /**
   * Allocates memory without an address (cuMemCreate).
   *
   * @param bytes the size, a multiple of the granularity
   * @param properties the properties of the memory
   * @return a handle of the memory, for {@link #memRelease}
   * @throws CudaException if the driver reports an error
   */
  long memCreate(long bytes, AllocationProperties properties);

  /**
   * Maps memory into a reserved range, where no device has access to it yet (cuMemMap). Memory can
   * be mapped several times.
   *
   * @param address where, a multiple of the granularity
   * @param bytes the size of the memory
   * @param offset where in the memory the mapping starts: 0, as the driver knows no other
   * @param handle a handle of the memory
   * @throws CudaException if the driver reports an error
   */
  void memMap(long address, long bytes, long offset, long handle);

  /**
   * Ends the mappings of a range, which may be several but none in part; does not wait for work
   * that uses them (cuMemUnmap).
   *
   * @param address where the first one starts
   * @param bytes the size of all
   * @throws CudaException if the driver reports an error
   */
  void memUnmap(long address, long bytes);

  /**
   * Sets what places may do with all that is mapped in a range (cuMemSetAccess).
   *
   * @param address where the first mapping starts
   * @param bytes the size of the mappings
   * @param locationType what the places are, by {@link MemLocationType}
   * @param locationIds the places: devices or nodes, at least one
   * @param access for each place, or one for all, by {@link MemAccessFlags}
   * @throws CudaException if the driver reports an error
   */
  void memSetAccess(long address, long bytes, int locationType, int[] locationIds, int... access);

  /**
   * {@return what a place may do with the memory mapped at an address, by {@link MemAccessFlags}
   * (cuMemGetAccess)}
   *
   * @param address an address in a mapping; NONE is the answer for memory that was never mapped
   * @param locationType what the place is, by {@link MemLocationType}
   * @param locationId the device or node
   * @throws CudaException if the driver reports an error
   */
  int memGetAccess(long address, int locationType, int locationId);

  /**
   * Releases a handle once; memory goes with its last handle and mapping (cuMemRelease).
   *
   * @param handle a handle of the memory
   * @throws CudaException if the driver reports an error
   */
  void memRelease(long handle);

  /**
   * {@return a handle of the memory mapped at an address, for one more {@link #memRelease}
   * (cuMemRetainAllocationHandle)}
   *
   * @param address an address in a mapping
   * @throws CudaException if the driver reports an error
   */
  long memRetainAllocationHandle(long address);

  /**
   * {@return the properties of memory (cuMemGetAllocationPropertiesFromHandle)}
   *
   * @param handle a handle of the memory
   * @throws CudaException if the driver reports an error
   */
  AllocationProperties memGetAllocationPropertiesFromHandle(long handle);

  /**
   * {@return a descriptor by which another process imports the memory; the caller closes it} The
   * memory must have been made with handle type 1 (cuMemExportToShareableHandle).
   *
   * @param handle a handle of the memory
   * @throws CudaException if the driver reports an error
   */
  int memExportToShareableHandle(long handle);

  /**
   * Imports memory of another process, or of this one (cuMemImportFromShareableHandle).
   *
   * @param descriptor the descriptor of the memory, which stays open
   * @return a handle of the memory, for {@link #memRelease}
   * @throws CudaException if the driver reports an error
   */
  long memImportFromShareableHandle(int descriptor);
}

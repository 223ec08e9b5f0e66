package io.cuvette.driver;

/**
 * Driver calls about the pools that stream-ordered memory comes from. Some need a newer driver than
 * the rest; they then throw {@link CudaStatus#CALL_REQUIRES_NEWER_DRIVER}. Thread-safe.
 */
public interface PoolCalls {

  /**
   * {@return the default pool of a device (cuDeviceGetDefaultMemPool)}
   *
   * @param device the device, from 0
   * @throws CudaException if the driver reports an error
   */
  long deviceGetDefaultMemPool(int device);

  /**
   * {@return the current pool of a device (cuDeviceGetMemPool)}
   *
   * @param device the device, from 0
   * @throws CudaException if the driver reports an error
   */
  long deviceGetMemPool(int device);

  /**
   * Makes a pool of the device current for it (cuDeviceSetMemPool).
   *
   * @param device the device, from 0
   * @param pool the handle of the pool
   * @throws CudaException if the driver reports an error
   */
  void deviceSetMemPool(int device, long pool);

  /**
   * {@return the default pool of a location and allocation type; CUDA 13 (cuMemGetDefaultMemPool)}
   *
   * @param locationType CUmemLocationType: 1 device, 2 host, 3 host NUMA node
   * @param locationId the device or node; 0 where it has no meaning
   * @param allocationType CUmemAllocationType: 1 pinned, 2 managed
   * @throws CudaException if the driver reports an error
   */
  long memGetDefaultMemPool(int locationType, int locationId, int allocationType);

  /**
   * {@return the current pool of a location and allocation type; CUDA 13 (cuMemGetMemPool)}
   *
   * @param locationType CUmemLocationType: 1 device, 2 host, 3 host NUMA node
   * @param locationId the device or node; 0 where it has no meaning
   * @param allocationType CUmemAllocationType: 1 pinned, 2 managed
   * @throws CudaException if the driver reports an error
   */
  long memGetMemPool(int locationType, int locationId, int allocationType);

  /**
   * Makes a pool current for its location and allocation type; CUDA 13 (cuMemSetMemPool).
   *
   * @param locationType CUmemLocationType: 1 device, 2 host, 3 host NUMA node
   * @param locationId the device or node; 0 where it has no meaning
   * @param allocationType CUmemAllocationType: 1 pinned, 2 managed
   * @param pool the handle of the pool
   * @throws CudaException if the driver reports an error
   */
  void memSetMemPool(int locationType, int locationId, int allocationType, long pool);

  /**
   * Creates a pool (cuMemPoolCreate).
   *
   * @param properties the properties of the pool
   * @return the handle of the pool
   * @throws CudaException INVALID_VALUE for properties that exclude each other, such as a handle
   *     type on host memory without a node; NOT_SUPPORTED where the driver cannot make such a pool
   */
  long memPoolCreate(PoolProperties properties);

  /**
   * Destroys a pool; memory in use stays valid until it is freed. A current pool is replaced by the
   * default one, which itself cannot be destroyed (cuMemPoolDestroy).
   *
   * @param pool the handle of the pool
   * @throws CudaException if the driver reports an error
   */
  void memPoolDestroy(long pool);

  /**
   * Releases cached memory down to a size, but none of unfinished frees (cuMemPoolTrimTo).
   *
   * @param pool the handle of the pool
   * @param bytesToKeep how many bytes may stay reserved, >= 0
   * @throws CudaException if the driver reports an error
   */
  void memPoolTrimTo(long pool, long bytesToKeep);

  /**
   * {@return a CUmemPool_attribute: 1 to 3 reuse policies as 0 or 1, 4 release threshold, 5 and 6
   * reserved bytes now and at most, 7 and 8 used bytes now and at most; 64-bit and unsigned
   * (cuMemPoolGetAttribute)}
   *
   * @param pool the handle of the pool
   * @param attribute CUmemPool_attribute
   * @throws CudaException if the driver reports an error
   */
  long memPoolGetAttribute(long pool, int attribute);

  /**
   * Sets attributes 1 to 4, or resets 6 and 8 with the value 0 (cuMemPoolSetAttribute).
   *
   * @param pool the handle of the pool
   * @param attribute CUmemPool_attribute
   * @param value the value, unsigned
   * @throws CudaException if the driver reports an error
   */
  void memPoolSetAttribute(long pool, int attribute, long value);

  /**
   * {@return CUmemAccess_flags of a location for a pool: 0 none, 1 read, 3 read and write
   * (cuMemPoolGetAccess)}
   *
   * @param pool the handle of the pool
   * @param locationType CUmemLocationType: 1 device, 2 host
   * @param locationId the device or node; 0 where it has no meaning
   * @throws CudaException if the driver reports an error
   */
  int memPoolGetAccess(long pool, int locationType, int locationId);

  /**
   * Sets the access of several devices to a pool in one call (cuMemPoolSetAccess).
   *
   * @param pool the handle of the pool
   * @param locationType 1 device or 2 host, the same for all
   * @param locationIds the devices, or 0 for the host
   * @param access CUmemAccess_flags: one for each location, or one for all
   * @throws CudaException INVALID_DEVICE or INVALID_VALUE for a device that cannot reach the memory
   */
  void memPoolSetAccess(long pool, int locationType, int[] locationIds, int... access);
}

package io.cuvette.driver;

/**
 * Driver calls about the pools that stream-ordered memory comes from. Some need a newer driver than
 * the rest; they then throw {@link CudaStatus#CALL_REQUIRES_NEWER_DRIVER}. Thread-safe.
 */
public interface PoolCalls {

  /** The pool a device was born with (cuDeviceGetDefaultMemPool). */
  long deviceGetDefaultMemPool(int device);

  /** The pool that is current for a device (cuDeviceGetMemPool). */
  long deviceGetMemPool(int device);

  /** Makes a pool of the device current for it (cuDeviceSetMemPool). */
  void deviceSetMemPool(int device, long pool);

  /** The default pool of a location and allocation type; CUDA 13 (cuMemGetDefaultMemPool). */
  long memGetDefaultMemPool(int locationType, int locationId, int allocationType);

  /** The current pool of a location and allocation type; CUDA 13 (cuMemGetMemPool). */
  long memGetMemPool(int locationType, int locationId, int allocationType);

  /** Makes a pool current for its location and allocation type; CUDA 13 (cuMemSetMemPool). */
  void memSetMemPool(int locationType, int locationId, int allocationType, long pool);

  /**
   * Makes a pool (cuMemPoolCreate).
   *
   * @throws CudaException INVALID_VALUE for properties that exclude each other, such as a handle
   *     type on host memory without a node; NOT_SUPPORTED where the driver cannot make such a pool
   */
  long memPoolCreate(PoolProperties properties);

  /**
   * Destroys a pool; memory in use stays valid until it is freed. A current pool is replaced by the
   * default one, which itself cannot be destroyed (cuMemPoolDestroy).
   */
  void memPoolDestroy(long pool);

  /**
   * Gives cached memory back down to a size; memory of unfinished frees stays (cuMemPoolTrimTo).
   */
  void memPoolTrimTo(long pool, long bytesToKeep);

  /**
   * A CUmemPool_attribute: 1 to 3 reuse policies as 0 or 1, 4 release threshold, 5 and 6 reserved
   * bytes now and at most, 7 and 8 used bytes now and at most; 64-bit and unsigned
   * (cuMemPoolGetAttribute).
   */
  long memPoolGetAttribute(long pool, int attribute);

  /** Sets attributes 1 to 4, or resets 6 and 8 with the value 0 (cuMemPoolSetAttribute). */
  void memPoolSetAttribute(long pool, int attribute, long value);

  /**
   * CUmemAccess_flags of a location for a pool: 0 none, 1 read, 3 read and write
   * (cuMemPoolGetAccess).
   */
  int memPoolGetAccess(long pool, int locationType, int locationId);

  /**
   * Sets the access of several devices to a pool in one call (cuMemPoolSetAccess).
   *
   * @param locationType 1 device or 2 host, the same for all
   * @param access CUmemAccess_flags: one for each location, or one for all
   * @throws CudaException INVALID_DEVICE or INVALID_VALUE for a device that cannot reach the memory
   */
  void memPoolSetAccess(long pool, int locationType, int[] locationIds, int... access);
}

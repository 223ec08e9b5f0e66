package io.cuvette.driver;

/** Driver calls that allocate and free memory of pools in stream order. Thread-safe. */
public interface OrderedCalls {

  /**
   * Allocates from the current pool of the stream's device in stream order (cuMemAllocAsync).
   *
   * @param device the device, from 0
   * @param bytes the size in bytes, >= 1
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @return the first address, valid for work queued in the stream from now on
   * @throws CudaException if the driver reports an error
   */
  long memAllocAsync(int device, long bytes, long stream);

  /**
   * Allocates from a pool in stream order; 0 bytes have an address too (cuMemAllocFromPoolAsync).
   *
   * @param device the device, from 0
   * @param bytes the size in bytes, >= 0
   * @param pool the handle of the pool
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @return the first address, valid for work queued in the stream from now on
   * @throws CudaException if the driver reports an error
   */
  long memAllocFromPoolAsync(int device, long bytes, long pool, long stream);

  /**
   * Frees stream-ordered memory in stream order (cuMemFreeAsync).
   *
   * @param device the device, from 0
   * @param address the first address of the memory
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  void memFreeAsync(int device, long address, long stream);
}

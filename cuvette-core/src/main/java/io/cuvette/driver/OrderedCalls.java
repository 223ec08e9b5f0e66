package io.cuvette.driver;

/** Driver calls that allocate and free memory of pools in stream order. Thread-safe. */
public interface OrderedCalls {

  /** Allocates from the current pool of the stream's device in stream order (cuMemAllocAsync). */
  long memAllocAsync(int device, long bytes, long stream);

  /**
   * Allocates from a pool in stream order; 0 bytes have an address too (cuMemAllocFromPoolAsync).
   */
  long memAllocFromPoolAsync(int device, long bytes, long pool, long stream);

  /** Frees stream-ordered memory in stream order (cuMemFreeAsync). */
  void memFreeAsync(int device, long address, long stream);
}

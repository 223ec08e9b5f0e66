package io.cuvette;

/**
 * Where device memory comes from; a lambda is one. A resource that calls {@link Cuda#allocate}
 * while it is the current allocator would call itself: that is found and refused.
 */
@FunctionalInterface
public interface MemoryResource {

  /**
   * Allocates memory on the device of a stream, in its order.
   *
   * @param bytes at least 0
   * @return a buffer of at least that many bytes, which gives the memory back when closed
   * @throws OutOfDeviceMemoryException if there is not enough memory
   */
  Buffer allocate(long bytes, CudaStream stream);

  /**
   * Plain device memory without a pool; its close may wait for the device (cuMemAlloc, cuMemFree).
   */
  static MemoryResource direct() {
    return DirectResource.DEVICE;
  }

  /**
   * Stream-ordered memory from the pool that is current for the device at each allocation
   * (cuMemAllocAsync, cuMemFreeAsync). {@link AsyncMemoryPool} states its pool and has a limit.
   * Before it says that memory is out, everything was tried.
   */
  static MemoryResource async() {
    return DirectResource.ASYNC;
  }

  /** Managed memory without a pool, visible to host and devices (cuMemAllocManaged, cuMemFree). */
  static MemoryResource managed() {
    return DirectResource.MANAGED;
  }
}

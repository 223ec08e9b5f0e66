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
   * <p>Any thread may call it at any time, and several at once.
   *
   * @param bytes the size in bytes, >= 0; 0 gives a buffer without memory
   * @param stream the stream in whose order the memory is first used
   * @return a buffer of at least that many bytes, which frees the memory when it is closed
   * @throws IllegalArgumentException if {@code bytes} is negative
   * @throws OutOfDeviceMemoryException if there is not enough memory
   * @throws IllegalStateException if the resource, the stream or the Cuda is closed
   * @throws io.cuvette.driver.CudaException if the driver reports another error
   */
  Buffer allocate(long bytes, CudaStream stream);

  /**
   * {@return a resource of plain device memory without a pool; its close may wait for the device
   * (cuMemAlloc, cuMemFree)}
   */
  static MemoryResource direct() {
    return DirectResource.DEVICE;
  }

  /**
   * {@return a resource of stream-ordered memory from the pool that is current for the device at
   * each allocation (cuMemAllocAsync, cuMemFreeAsync)} {@link AsyncMemoryPool} states its pool and
   * has a limit. Before it reports that memory is out, everything was tried.
   */
  static MemoryResource async() {
    return DirectResource.ASYNC;
  }

  /**
   * {@return a resource of managed memory without a pool, visible to host and devices
   * (cuMemAllocManaged, cuMemFree)}
   */
  static MemoryResource managed() {
    return DirectResource.MANAGED;
  }
}

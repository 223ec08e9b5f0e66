package io.cuvette;

/** Where page-locked host memory comes from; a lambda is one. */
@FunctionalInterface
public interface PinnedAllocator {

  /**
   * Allocates page-locked host memory that the caller can write at once. Memory that comes in order
   * of a stream, as that of a {@link PinnedMemoryResource}, is not fit for it: work that was queued
   * before may still be reading it.
   *
   * <p>Any thread may call it at any time, and several at once.
   *
   * @param bytes the size in bytes, >= 0; 0 gives a buffer without memory
   * @return a buffer of at least that many bytes, which frees the memory when it is closed
   * @throws IllegalArgumentException if {@code bytes} is negative
   * @throws OutOfPinnedMemoryException if there is not enough memory
   * @throws IllegalStateException if the allocator or the Cuda is closed
   * @throws io.cuvette.driver.CudaException if the driver reports another error
   */
  PinnedBuffer allocate(long bytes);
}

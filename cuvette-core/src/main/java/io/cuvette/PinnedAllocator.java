package io.cuvette;

/** Where page-locked host memory comes from; a lambda is one. */
@FunctionalInterface
public interface PinnedAllocator {

  /**
   * Allocates page-locked host memory.
   *
   * @param bytes at least 0
   * @throws OutOfPinnedMemoryException if there is not enough memory
   */
  PinnedBuffer allocate(long bytes);
}

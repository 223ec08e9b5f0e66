package io.cuvette;

/** Where page-locked host memory comes from; a lambda is one. */
@FunctionalInterface
public interface PinnedAllocator {

  /**
   * Allocates page-locked host memory that the caller can write at once. Memory that comes in order
   * of a stream, as that of a {@link PinnedMemoryResource}, is not fit for it: work that was queued
   * before may still be reading it.
   *
   * @param bytes at least 0
   * @throws OutOfPinnedMemoryException if there is not enough memory
   */
  PinnedBuffer allocate(long bytes);
}

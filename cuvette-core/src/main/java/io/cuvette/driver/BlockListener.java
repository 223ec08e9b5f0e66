package io.cuvette.driver;

/**
 * Learns of what a driver does not see: the blocks that pools cut from the memory it gave, and how
 * the host touches memory. Thread-safe.
 */
public interface BlockListener {

  /**
   * Memory that a pool lends to one user. Immutable.
   *
   * @param depth the number of pools that it came through: 1 for a block of memory that the driver
   *     gave, 2 for one of a pool whose upstream is a pool
   * @param address where it begins
   * @param bytes what the user asked for, at least 1
   */
  record Block(int depth, long address, long bytes) {}

  /** A pool lends a block, which later work of a stream may use. Its content is undefined. */
  void blockAllocated(Block block, int device, long stream);

  /** A pool lends a block that the host may use at once. Its content is undefined. */
  void blockAllocated(Block block);

  /** The user of a block has closed it; the pool has not got it back yet. */
  void blockFreed(Block block);

  /** Work that is queued in a stream by other means uses memory, and may write it. */
  void usedElsewhere(long address, long bytes, int device, long stream);

  /** The host is about to read or write memory. */
  void hostAccess(long address, long bytes, boolean writes);
}

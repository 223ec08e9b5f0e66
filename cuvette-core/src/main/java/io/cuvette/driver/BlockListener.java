package io.cuvette.driver;

/**
 * Receives what a driver does not see: the blocks that pools cut from its memory, and accesses of
 * the host. Thread-safe.
 */
public interface BlockListener {

  /**
   * Memory that a pool lends to one user. Immutable.
   *
   * @param depth the number of pools that it came through: 1 for a block of memory that the driver
   *     gave, 2 for one of a pool whose upstream is a pool
   * @param address where it begins
   * @param bytes the bytes that the user requested, >= 1
   */
  record Block(int depth, long address, long bytes) {}

  /**
   * Called when a pool lends a block that later work of a stream may use. Its content is undefined.
   *
   * @param block the block
   * @param device the device, from 0
   * @param stream the handle of the stream
   */
  void blockAllocated(Block block, int device, long stream);

  /**
   * Called when a pool lends a block that the host may use at once. Its content is undefined.
   *
   * @param block the block
   */
  void blockAllocated(Block block);

  /**
   * Called before {@link #blockFreed} for a block that no graph may use any more. Does nothing
   * unless overridden.
   *
   * @param block the block
   */
  default void leftByGraphs(Block block) {}

  /**
   * Called when a block is closed, before the pool has it back.
   *
   * @param block the block
   */
  void blockFreed(Block block);

  /**
   * Called when work that other libraries queued in a stream uses memory, and may write it.
   *
   * @param address the first address
   * @param bytes the number of bytes
   * @param device the device, from 0
   * @param stream the handle of the stream
   */
  void usedElsewhere(long address, long bytes, int device, long stream);

  /**
   * Called before the host reads or writes memory.
   *
   * @param address the first address
   * @param bytes the number of bytes
   * @param writes whether the host writes; else it reads
   */
  void hostAccess(long address, long bytes, boolean writes);

  /**
   * Called before the host copies bytes of a buffer out of it, after {@link #hostAccess}. Does
   * nothing unless overridden.
   *
   * @param address the first address
   * @param bytes the number of bytes
   * @param target the address that they are copied to; 0 in the Java heap
   */
  default void hostCopy(long address, long bytes, long target) {}
}

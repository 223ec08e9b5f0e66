package io.cuvette;

import java.util.Objects;

/**
 * Is called by a {@link MemoryPool} before and after it allocates a block, frees a block, and
 * requests memory from upstream, on the thread that does so. Hooks are called in the order in which
 * they were added, before and after alike. An exception from a method before stops the operation.
 *
 * <p>A hook may allocate from other resources, not from the pool that calls it: that is an {@link
 * IllegalStateException}. It may close buffers of the pool; no hook is called for these.
 */
public interface MemoryHook {

  /**
   * A request to upstream.
   *
   * @param device the device
   * @param blockBytes the rounded size
   * @param address the address of the memory; 0 before the request, and after a failure
   */
  record Growth(CudaDevice device, long blockBytes, long address) {
    /** Creates a growth. */
    public Growth {
      Objects.requireNonNull(device, "device");
    }
  }

  /**
   * A block that is allocated or freed.
   *
   * @param device the device
   * @param requestedBytes the requested size
   * @param blockBytes the rounded size
   * @param address the address of the block; 0 before it is allocated, and after a failure
   * @param blockId a number that is the same when the block is allocated and freed; 0 like the
   *     address
   */
  record Block(
      CudaDevice device, long requestedBytes, long blockBytes, long address, long blockId) {
    /** Creates a block. */
    public Block {
      Objects.requireNonNull(device, "device");
    }
  }

  /**
   * Called before memory is requested from upstream, at each try.
   *
   * @param growth the memory that the pool takes
   */
  default void allocPreprocess(Growth growth) {}

  /**
   * Called after memory was requested from upstream, also if that failed.
   *
   * @param growth the memory that the pool takes
   */
  default void allocPostprocess(Growth growth) {}

  /**
   * Called before a block is searched for.
   *
   * @param block the block
   */
  default void mallocPreprocess(Block block) {}

  /**
   * Called after a block was allocated, also if none was found.
   *
   * @param block the block
   */
  default void mallocPostprocess(Block block) {}

  /**
   * Before a block goes back.
   *
   * @param block the block
   */
  default void freePreprocess(Block block) {}

  /**
   * After a block went back, also if that failed.
   *
   * @param block the block
   */
  default void freePostprocess(Block block) {}
}

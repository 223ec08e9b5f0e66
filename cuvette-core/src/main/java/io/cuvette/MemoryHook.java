package io.cuvette;

import java.util.Objects;

/**
 * Receives what a {@link MemoryPool} does: around a block allocated, a block freed, and memory
 * asked from upstream. Hooks are called in the order they were added, before and after alike, on
 * the thread that does it. An exception of a method before stops the operation.
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
   * @param address what came; 0 before, and after a failure
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
   * @param requestedBytes what was asked for
   * @param blockBytes the rounded size
   * @param address where it is; 0 before it is given out, and after a failure
   * @param blockId the same number for the block's way out and back; 0 like the address
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
   * After upstream was asked, also if it failed.
   *
   * @param growth the memory that the pool takes
   */
  default void allocPostprocess(Growth growth) {}

  /**
   * Before a block is looked for.
   *
   * @param block the block
   */
  default void mallocPreprocess(Block block) {}

  /**
   * After a block was given out, also if none was found.
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

package io.cuvette;

import java.util.Objects;

/**
 * Told of what a {@link MemoryPool} does: around a block given out, a block taken back, and memory
 * asked from upstream. Hooks are called in the order they were added, before and after alike, on
 * the thread that does it. An exception of a method before stops the operation.
 *
 * <p>A hook may allocate from other resources, not from the pool that calls it: that is an {@link
 * IllegalStateException}. It may close buffers of the pool, of which no hook is told then.
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
    public Growth {
      Objects.requireNonNull(device, "device");
    }
  }

  /**
   * A block given out or taken back.
   *
   * @param device the device
   * @param requestedBytes what was asked for
   * @param blockBytes the rounded size
   * @param address where it is; 0 before it is given out, and after a failure
   * @param blockId the same number for the block's way out and back; 0 like the address
   */
  record Block(
      CudaDevice device, long requestedBytes, long blockBytes, long address, long blockId) {
    public Block {
      Objects.requireNonNull(device, "device");
    }
  }

  /** Before upstream is asked, each time it is tried. */
  default void allocPreprocess(Growth growth) {}

  /** After upstream was asked, also if it failed. */
  default void allocPostprocess(Growth growth) {}

  /** Before a block is looked for. */
  default void mallocPreprocess(Block block) {}

  /** After a block was given out, also if none was found. */
  default void mallocPostprocess(Block block) {}

  /** Before a block goes back. */
  default void freePreprocess(Block block) {}

  /** After a block went back, also if that failed. */
  default void freePostprocess(Block block) {}
}

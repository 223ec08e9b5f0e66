package io.cuvette;

import io.cuvette.internal.base.ByteSize;

/**
 * Statistics of a pool on one device at one moment, in bytes unless noted otherwise. Used + free =
 * held, always. Immutable.
 *
 * @param usedBytes blocks in use
 * @param freeBytes cached memory, with what is pending
 * @param heldBytes memory held from upstream
 * @param requestedBytes the requested sizes of the blocks in use, before rounding
 * @param pendingBytes closed blocks that other streams may still use, and memory that upstream is
 *     getting back, at the latest when the callback returns in which it was freed
 * @param graphBytes those of the free bytes that only graphs may use, until they are gone: of
 *     closed blocks that captured work uses, and what captures have cached
 * @param releasableBytes cached memory that {@link MemoryPool#freeAllBlocks()} could release now
 * @param largestFreeBytes the largest cached block
 * @param usedBlocks the number of blocks in use
 * @param freeBlocks the number of cached blocks, with those that are pending
 * @param chunks the number of allocations held from upstream
 * @param peakUsedBytes the largest number of bytes ever in use; with several streams an upper
 *     bound: the sum of each stream's own peak, and never more than was held
 * @param peakHeldBytes the largest number of bytes ever held
 * @param allocations the number of blocks allocated so far
 * @param growths how often upstream provided memory
 * @param crossStreamReuses how often a block cached for another stream was reused
 * @param outOfMemories how often an allocation failed
 * @param limitBytes the limit, Long.MAX_VALUE for none
 */
public record PoolStats(
    long usedBytes,
    long freeBytes,
    long heldBytes,
    long requestedBytes,
    long pendingBytes,
    long graphBytes,
    long releasableBytes,
    long largestFreeBytes,
    int usedBlocks,
    int freeBlocks,
    int chunks,
    long peakUsedBytes,
    long peakHeldBytes,
    long allocations,
    long growths,
    long crossStreamReuses,
    long outOfMemories,
    long limitBytes) {

  /**
   * {@return the fraction of the cached memory that the largest request cannot use: 1 − largest ÷
   * free, 0 if none is cached}
   */
  public double fragmentation() {
    return freeBytes == 0 ? 0 : 1 - (double) largestFreeBytes / freeBytes;
  }

  @Override
  public String toString() {
    return "used %s in %s, free %s in %s (largest %s), held %s in %s, limit %s"
        .formatted(
            ByteSize.format(usedBytes),
            ByteSize.count(usedBlocks, "block"),
            ByteSize.format(freeBytes),
            ByteSize.count(freeBlocks, "block"),
            ByteSize.format(largestFreeBytes),
            ByteSize.format(heldBytes),
            ByteSize.count(chunks, "chunk"),
            limitBytes == Long.MAX_VALUE ? "none" : ByteSize.format(limitBytes));
  }
}

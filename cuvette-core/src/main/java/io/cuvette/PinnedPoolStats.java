package io.cuvette;

/**
 * Statistics of a pool of page-locked memory at one moment, in bytes unless noted otherwise. Used +
 * free = held, always. Immutable.
 *
 * @param usedBytes blocks in use
 * @param freeBytes cached memory, with what is pending
 * @param heldBytes memory held from upstream
 * @param requestedBytes the requested sizes of the blocks in use, before rounding
 * @param pendingBytes closed blocks that copies may still use, and memory that upstream is getting
 *     back, at the latest when the callback returns in which it was freed
 * @param usedBlocks the number of blocks in use
 * @param freeBlocks the number of cached blocks, with those that are pending
 * @param peakUsedBytes the largest number of bytes ever in use, including those pending then; once
 *     threads have met in the pool an upper bound, and never more than peakHeldBytes
 * @param peakHeldBytes the largest number of bytes ever held
 * @param allocations the number of blocks allocated so far
 * @param growths how often upstream provided memory
 * @param outOfMemories how often an allocation failed
 * @param limitBytes the limit, Long.MAX_VALUE for none
 */
public record PinnedPoolStats(
    long usedBytes,
    long freeBytes,
    long heldBytes,
    long requestedBytes,
    long pendingBytes,
    int usedBlocks,
    int freeBlocks,
    long peakUsedBytes,
    long peakHeldBytes,
    long allocations,
    long growths,
    long outOfMemories,
    long limitBytes) {}

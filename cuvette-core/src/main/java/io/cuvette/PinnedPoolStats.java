package io.cuvette;

/**
 * What a pool of page-locked memory has at one moment, in bytes unless said otherwise. Always used
 * + free = held. Immutable.
 *
 * @param usedBytes blocks in use
 * @param freeBytes cached memory, with what is pending
 * @param heldBytes memory held from upstream
 * @param requestedBytes what the users of the blocks in use asked for
 * @param pendingBytes closed blocks that copies may still use, and memory that upstream is getting
 *     back, at the latest when the callback returns in which it was freed
 * @param usedBlocks the number of blocks in use
 * @param freeBlocks the number of cached blocks, with those that are pending
 * @param peakUsedBytes the most that was ever in use, with what was pending then
 * @param peakHeldBytes the most that was ever held
 * @param allocations the number of blocks given out so far
 * @param growths how often upstream was asked with success
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

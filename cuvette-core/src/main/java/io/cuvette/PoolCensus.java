package io.cuvette;

import io.cuvette.pool.BlockArena;

/** Adds up the arenas of a pool on one device. Confined to the counting thread. */
final class PoolCensus {
  long usedBytes;
  long freeBytes;
  long requestedBytes;
  long releasableBytes;
  long largestFreeBytes;
  int usedBlocks;
  int freeBlocks;
  int chunks;
  long peakUsedBytes;
  long allocations;

  void add(BlockArena blocks, long requested, long peakUsed, long allocated) {
    usedBytes += blocks.usedBytes();
    freeBytes += blocks.freeBytes();
    requestedBytes += requested;
    releasableBytes += blocks.releasableBytes();
    largestFreeBytes = Math.max(largestFreeBytes, blocks.largestFreeBytes());
    usedBlocks += blocks.usedBlocks();
    freeBlocks += blocks.freeBlocks();
    chunks += blocks.chunks();
    peakUsedBytes += peakUsed;
    allocations += allocated;
  }
}

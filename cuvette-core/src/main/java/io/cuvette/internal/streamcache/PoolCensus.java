package io.cuvette.internal.streamcache;

import io.cuvette.internal.index.BlockArena;
import org.jspecify.annotations.Nullable;

/** Adds up the arenas of a pool on one device. Confined to the counting thread. */
public final class PoolCensus {
  public long usedBytes;
  public long freeBytes;
  public long requestedBytes;
  public long releasableBytes;

  /** Those of the free bytes that only captured work may use. */
  public long graphBytes;

  public long largestFreeBytes;
  public int usedBlocks;
  public int freeBlocks;
  public int chunks;
  public long peakUsedBytes;
  public long allocations;

  public void add(BlockArena blocks, long requested, long peakUsed, long allocated) {
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

  /** Adds what stripes count themselves. */
  void add(@Nullable FrontCache front) {
    if (front != null) {
      requestedBytes += front.requestedBytes();
      allocations += front.allocations();
      usedBlocks += front.blocksBesideSlabs();
    }
  }

  /** What was added last is for captured work alone, and cannot be released. */
  void keepForGraphs(BlockArena blocks) {
    graphBytes += blocks.freeBytes();
    releasableBytes -= blocks.releasableBytes();
  }
}

package io.cuvette.internal.elastic;

import io.cuvette.internal.streamcache.CachedBlock;

/** What is in use of a heap. Not thread-safe. */
final class ElasticBooks {
  long requestedBytes;
  long usedBytes;
  int usedBlocks;
  long allocations;
  private long peakUsedBytes;

  void take(CachedBlock block, long rounded) {
    usedBlocks++;
    usedBytes += rounded;
    peakUsedBytes = Math.max(peakUsedBytes, usedBytes);
    if (block.stripe == null) { // which else has counted it
      allocations++;
      requestedBytes += block.requestedBytes;
    }
  }

  void give(CachedBlock block, long rounded) {
    usedBlocks--;
    usedBytes -= rounded;
    requestedBytes -= block.stripe == null ? block.requestedBytes : 0;
  }

  long resetPeak() {
    peakUsedBytes = usedBytes;
    return peakUsedBytes;
  }

  void write(ElasticCensus census) {
    census.usedBytes = usedBytes;
    census.usedBlocks = usedBlocks;
    census.peakUsedBytes = peakUsedBytes;
  }
}

package io.cuvette.internal.elastic;

import io.cuvette.internal.space.HeapCensus;

/** What is in use of a heap. Not thread-safe. */
final class ElasticBooks {
  long requestedBytes;
  long usedBytes;
  int usedBlocks;
  long allocations;
  private long peakUsedBytes;

  void take(long requested, long rounded) {
    takeSlab(rounded);
    allocations++;
    requestedBytes += requested;
  }

  void give(long requested, long rounded) {
    usedBlocks--;
    usedBytes -= rounded;
    requestedBytes -= requested;
  }

  /** Memory in use of which others count the blocks. */
  void takeSlab(long bytes) {
    usedBlocks++;
    usedBytes += bytes;
    peakUsedBytes = Math.max(peakUsedBytes, usedBytes);
  }

  long resetPeak() {
    peakUsedBytes = usedBytes;
    return peakUsedBytes;
  }

  void write(HeapCensus census) {
    census.usedBytes = usedBytes;
    census.usedBlocks = usedBlocks;
    census.peakUsedBytes = peakUsedBytes;
  }
}

package io.cuvette.internal.elastic;

/** What is in use of a heap. Not thread-safe. */
final class ElasticBooks {
  long requestedBytes;
  long usedBytes;
  int usedBlocks;
  long allocations;
  private long peakUsedBytes;

  void take(long bytes, long rounded) {
    allocations++;
    usedBlocks++;
    usedBytes += rounded;
    requestedBytes += bytes;
    peakUsedBytes = Math.max(peakUsedBytes, usedBytes);
  }

  void give(long bytes, long rounded) {
    usedBlocks--;
    usedBytes -= rounded;
    requestedBytes -= bytes;
  }

  void resetPeak() {
    peakUsedBytes = usedBytes;
  }

  void write(ElasticCensus census) {
    census.usedBytes = usedBytes;
    census.usedBlocks = usedBlocks;
    census.requestedBytes = requestedBytes;
    census.peakUsedBytes = peakUsedBytes;
    census.allocations = allocations;
  }
}

package io.cuvette.internal.space;

/** The numbers of a heap at one moment. Confined to the counting thread. */
public final class HeapCensus {
  public long usedBytes;
  public long requestedBytes;
  public long peakUsedBytes;
  public long allocations;
  public int usedBlocks;
  public int freeRuns;
  public long largestFreeBytes;
  public long releasableBytes;

  /** Free memory that streams may still use, and of that what graphs may. */
  public long orderedBytes;

  public long graphBytes;
  public long mappedBytes;

  /** Free memory whose work is done. */
  public long doneBytes;

  /** Closed blocks that are not back yet. */
  public long pendingBytes;

  public int pieces;
  public long pageBytes;
  public long movedPieces;

  public void add(Space space) {
    freeRuns += space.freeRuns();
    largestFreeBytes = Math.max(largestFreeBytes, space.largestFree() << Space.UNIT_SHIFT);
    releasableBytes += space.releasableUnits() << Space.UNIT_SHIFT;
    mappedBytes += space.mappedUnits() << Space.UNIT_SHIFT;
    doneBytes += space.freeUnits(Space.DONE) << Space.UNIT_SHIFT;
  }

  public void add(long freeBytes, boolean isForGraphs) {
    orderedBytes += freeBytes;
    graphBytes += isForGraphs ? freeBytes : 0;
  }
}

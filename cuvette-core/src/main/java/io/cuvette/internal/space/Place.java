package io.cuvette.internal.space;

/** Where a block could be, partly or wholly in holes: the best place offered. Not thread-safe. */
public final class Place {
  /** The first run that it is in. */
  int first = Space.NONE;

  /** Units from the start of that run. */
  long offset;

  /** Units to be mapped. */
  public long cost = Long.MAX_VALUE;

  private long extent = Long.MAX_VALUE;

  public boolean isFound() {
    return first != Space.NONE;
  }

  /** Takes a place that needs less memory, or as much in a smaller gap. */
  void offer(int first, long offset, long cost, long extent) {
    if (cost < this.cost || (cost == this.cost && extent < this.extent)) {
      this.first = first;
      this.offset = offset;
      this.cost = cost;
      this.extent = extent;
    }
  }
}

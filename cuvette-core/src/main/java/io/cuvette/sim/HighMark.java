package io.cuvette.sim;

/** A number of bytes, and the highest that it was. Guarded by the driver's lock. */
final class HighMark {
  private long bytes;
  private long highest;

  void add(long more) {
    bytes += more;
    highest = Math.max(highest, bytes);
  }

  long bytes() {
    return bytes;
  }

  long highest() {
    return highest;
  }

  /** Forgets that it was higher than now. */
  void reset() {
    highest = bytes;
  }
}

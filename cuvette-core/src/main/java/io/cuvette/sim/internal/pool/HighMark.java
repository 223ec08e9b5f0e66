package io.cuvette.sim.internal.pool;

/** A number of bytes, and the highest that it was. Guarded by the driver's lock. */
public final class HighMark {
  private long bytes;
  private long highest;

  public void add(long more) {
    bytes += more;
    highest = Math.max(highest, bytes);
  }

  public long bytes() {
    return bytes;
  }

  public long highest() {
    return highest;
  }

  /** Forgets that it was higher than now. */
  public void reset() {
    highest = bytes;
  }
}

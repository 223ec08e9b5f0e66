package io.cuvette.sim.internal.base;

import org.jspecify.annotations.Nullable;

/**
 * Which ranges of a file are used: best fit, all in whole pages. The file ends where the last used
 * range ends. Not thread-safe.
 */
public final class FileExtents {
  public static final long PAGE = 4096;

  private final Gaps gaps = new Gaps(Gaps.UNBOUNDED);
  private long end;

  public Extent reserve(long bytes) {
    long size = (bytes + PAGE - 1) / PAGE * PAGE;
    @Nullable Extent fit = gaps.take(size);
    if (fit == null) {
      fit = new Extent(end, size);
      end += size;
    }
    return fit;
  }

  /** Releases a range and returns where the file may end now. */
  public long release(Extent extent) {
    Extent gap = gaps.add(extent);
    if (gap.end() == end) {
      end = gap.offset();
      gaps.remove(gap);
    }
    return end;
  }

  /** The size of the largest range that can be used again; 0 if there is none. */
  public long largestFree() {
    return gaps.largest();
  }
}

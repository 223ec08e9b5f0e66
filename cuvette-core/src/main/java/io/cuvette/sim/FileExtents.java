package io.cuvette.sim;

import java.util.Comparator;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Which ranges of a file are used: best fit, neighbours merged, all in whole pages. The file ends
 * where the last used range ends. Not thread-safe.
 */
final class FileExtents {
  static final long PAGE = 4096;

  private final TreeMap<Long, Long> freeByOffset = new TreeMap<>();
  private final TreeSet<Extent> freeBySize =
      new TreeSet<>(Comparator.comparingLong(Extent::byteSize).thenComparingLong(Extent::offset));
  private long end;

  /** A range of the file. Immutable. */
  record Extent(long offset, long byteSize) {}

  Extent reserve(long bytes) {
    long size = (bytes + PAGE - 1) / PAGE * PAGE;
    @Nullable Extent fit = freeBySize.ceiling(new Extent(0, size));
    if (fit == null) {
      end += size;
      return new Extent(end - size, size);
    }
    remove(fit);
    if (fit.byteSize > size) {
      add(new Extent(fit.offset + size, fit.byteSize - size));
    }
    return new Extent(fit.offset, size);
  }

  /** Gives a range back and says where the file may end now. */
  long release(Extent extent) {
    long from = extent.offset;
    long to = extent.offset + extent.byteSize;
    Map.Entry<Long, Long> before = freeByOffset.lowerEntry(from);
    if (before != null && before.getKey() + before.getValue() == from) {
      from = before.getKey();
      remove(new Extent(from, before.getValue()));
    }
    Long behind = freeByOffset.get(to);
    if (behind != null) {
      remove(new Extent(to, behind));
      to += behind;
    }
    if (to == end) {
      end = from;
    } else {
      add(new Extent(from, to - from));
    }
    return end;
  }

  /** The size of the largest range that can be used again; 0 if there is none. */
  long largestFree() {
    return freeBySize.isEmpty() ? 0 : freeBySize.last().byteSize;
  }

  private void add(Extent extent) {
    freeByOffset.put(extent.offset, extent.byteSize);
    freeBySize.add(extent);
  }

  private void remove(Extent extent) {
    freeByOffset.remove(extent.offset);
    freeBySize.remove(extent);
  }
}

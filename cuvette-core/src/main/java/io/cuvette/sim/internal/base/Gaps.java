package io.cuvette.sim.internal.base;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Free ranges, by place and by size; neighbours are one range unless a boundary is between them.
 * Not thread-safe.
 */
public final class Gaps {
  /** For gaps that may be of any length. */
  public static final long UNBOUNDED = Long.MAX_VALUE;

  private final long boundary;
  private final TreeMap<Long, Extent> byOffset = new TreeMap<>();
  private final TreeSet<Extent> bySize =
      new TreeSet<>(Comparator.comparingLong(Extent::byteSize).thenComparingLong(Extent::offset));

  /** No gaps, of which none will span a multiple of {@code boundary} bytes. */
  public Gaps(long boundary) {
    this.boundary = boundary;
  }

  public Gaps copy() {
    Gaps copy = new Gaps(boundary);
    copy.byOffset.putAll(byOffset);
    copy.bySize.addAll(bySize);
    return copy;
  }

  /** The smallest gap that is large enough; null if none is. */
  public @Nullable Extent smallest(long bytes) {
    return bySize.ceiling(new Extent(0, bytes));
  }

  /** The size of the largest gap; 0 if there is none. */
  public long largest() {
    return bySize.isEmpty() ? 0 : bySize.last().byteSize();
  }

  /** The last gap that is large enough; null if none is. */
  public @Nullable Extent last(long bytes) {
    if (largest() < bytes) {
      return null;
    }
    for (Extent gap : byOffset.descendingMap().values()) {
      if (gap.byteSize() >= bytes) {
        return gap;
      }
    }
    return null;
  }

  /** The gap that ends at an offset; null if there is none. */
  public @Nullable Extent endingAt(long offset) {
    Map.Entry<Long, Extent> before = byOffset.lowerEntry(offset);
    return before == null || before.getValue().end() != offset ? null : before.getValue();
  }

  /** All gaps, in their order. */
  public List<Extent> all() {
    return List.copyOf(byOffset.values());
  }

  /**
   * Takes the smallest gap that is large enough, or its front.
   *
   * @return null if none is large enough
   */
  public @Nullable Extent take(long bytes) {
    Extent gap = smallest(bytes);
    if (gap == null) {
      return null;
    }
    Extent taken = new Extent(gap.offset(), bytes);
    remove(taken);
    return taken;
  }

  /** Makes a range part of the gaps, and returns the gap that it is in then. */
  public Extent add(Extent range) {
    Extent before = range.offset() % boundary == 0 ? null : endingAt(range.offset());
    Extent behind = range.end() % boundary == 0 ? null : byOffset.get(range.end());
    long from = before == null ? range.offset() : before.offset();
    long to = behind == null ? range.end() : behind.end();
    if (before != null) {
      forget(before);
    }
    if (behind != null) {
      forget(behind);
    }
    Extent gap = new Extent(from, to - from);
    put(gap);
    return gap;
  }

  /** Takes what is in a range out of the gaps. */
  public void remove(Extent range) {
    Long first = byOffset.floorKey(range.offset());
    List<Extent> gaps =
        new ArrayList<>(
            byOffset
                .subMap(Objects.requireNonNullElse(first, range.offset()), range.end())
                .values());
    for (Extent gap : gaps) {
      if (gap.overlap(range) > 0) {
        forget(gap);
        put(new Extent(gap.offset(), range.offset() - gap.offset()));
        put(new Extent(range.end(), gap.end() - range.end()));
      }
    }
  }

  private void put(Extent gap) {
    if (gap.byteSize() > 0) {
      byOffset.put(gap.offset(), gap);
      bySize.add(gap);
    }
  }

  private void forget(Extent gap) {
    byOffset.remove(gap.offset());
    bySize.remove(gap);
  }
}

package io.cuvette.sim.internal.base;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedSet;
import java.util.TreeMap;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Free ranges, by place, and by size and age; neighbours are one range unless a boundary is between
 * them. Not thread-safe.
 */
public final class Gaps {
  /** For gaps that may be of any length. */
  public static final long UNBOUNDED = Long.MAX_VALUE;

  private final long boundary;
  private final TreeMap<Long, Extent> byOffset = new TreeMap<>();
  private final TreeMap<Long, SequencedSet<Extent>> bySize = new TreeMap<>();

  /** No gaps, of which none will span a multiple of {@code boundary} bytes. */
  public Gaps(long boundary) {
    this.boundary = boundary;
  }

  public Gaps copy() {
    Gaps copy = new Gaps(boundary);
    copy.byOffset.putAll(byOffset);
    bySize.forEach((bytes, gaps) -> copy.bySize.put(bytes, new LinkedHashSet<>(gaps)));
    return copy;
  }

  /** The smallest gap that is large enough, of several the oldest; null if none is. */
  public @Nullable Extent smallest(long bytes) {
    Map.Entry<Long, SequencedSet<Extent>> entry = bySize.ceilingEntry(bytes);
    return entry == null ? null : entry.getValue().getFirst();
  }

  /** The size of the largest gap; 0 if there is none. */
  public long largest() {
    return bySize.isEmpty() ? 0 : bySize.lastKey();
  }

  /** The smallest gap that is large enough and meets a condition, of several the oldest. */
  public @Nullable Extent smallest(long bytes, Predicate<Extent> condition) {
    return bySize.tailMap(bytes).values().stream()
        .flatMap(SequencedSet::stream)
        .filter(condition)
        .findFirst()
        .orElse(null);
  }

  /** What of a range is in gaps, in order. */
  public List<Extent> in(Extent range) {
    return touching(range).stream()
        .filter(gap -> gap.overlap(range) > 0)
        .map(gap -> new Extent(Math.max(gap.offset(), range.offset()), gap.overlap(range)))
        .toList();
  }

  private List<Extent> touching(Extent range) {
    Long first = byOffset.floorKey(range.offset());
    return List.copyOf(
        byOffset.subMap(Objects.requireNonNullElse(first, range.offset()), range.end()).values());
  }

  private @Nullable Extent endingAt(long offset) {
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
    for (Extent gap : touching(range)) {
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
      bySize.computeIfAbsent(gap.byteSize(), _ -> new LinkedHashSet<>()).add(gap);
    }
  }

  private void forget(Extent gap) {
    byOffset.remove(gap.offset());
    SequencedSet<Extent> alike = Objects.requireNonNull(bySize.get(gap.byteSize()));
    alike.remove(gap);
    if (alike.isEmpty()) {
      bySize.remove(gap.byteSize());
    }
  }
}

package io.cuvette.sim.internal.pool;

import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.base.Gaps;
import io.cuvette.sim.internal.queue.SimOp;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedSet;
import java.util.TreeMap;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The frees of a pool whose end the host does not know of yet, oldest first. Guarded by the
 * driver's lock.
 */
public final class PoolFrees {
  private final SequencedSet<PoolFree> frees = new LinkedHashSet<>();

  /** What was not allocated again, by its offset. */
  private final TreeMap<Long, Piece> pieces = new TreeMap<>();

  /** What is left of a free, or a part of that. Immutable. */
  private record Piece(Extent place, PoolFree free) {}

  public void add(PoolFree free) {
    frees.add(free);
    put(free, free.place());
  }

  private void put(PoolFree free, Extent place) {
    if (place.byteSize() > 0) {
      pieces.put(place.offset(), new Piece(place, free));
    }
  }

  /** A place for some bytes in what frees that meet a condition release: the smallest there is. */
  public @Nullable Extent find(long bytes, Predicate<PoolFree> condition) {
    Extent gap = with(new Gaps(Gaps.UNBOUNDED), condition).smallest(bytes);
    return gap == null ? null : new Extent(gap.offset(), bytes);
  }

  /** Some gaps, and with them the frees that meet a condition. */
  public Gaps with(Gaps gaps, Predicate<PoolFree> condition) {
    Gaps all = null;
    for (Piece piece : pieces.values()) {
      if (condition.test(piece.free)) {
        all = all == null ? gaps.copy() : all;
        all.add(piece.place);
      }
    }
    return all == null ? gaps : all;
  }

  /** The frees that release bytes of a place. */
  public List<PoolFree> of(Extent place) {
    return in(place).stream().map(Piece::free).distinct().toList();
  }

  private List<Piece> in(Extent place) {
    Long first = pieces.floorKey(place.offset());
    Map<Long, Piece> near =
        pieces.subMap(Objects.requireNonNullElse(first, place.offset()), place.end());
    return near.values().stream().filter(piece -> piece.place.overlap(place) > 0).toList();
  }

  /**
   * Takes a place out of the frees.
   *
   * @return how many of its bytes are of frees that did not happen yet
   */
  public long take(Extent place) {
    long undone = 0;
    for (Piece piece : in(place)) {
      Extent old = piece.place;
      pieces.remove(old.offset());
      put(piece.free, new Extent(old.offset(), place.offset() - old.offset()));
      put(piece.free, new Extent(place.end(), old.end() - place.end()));
      long taken = old.overlap(place);
      undone += piece.free.isDone() ? 0 : taken;
      if (piece.free.take(taken) == 0) {
        frees.remove(piece.free);
      }
    }
    return undone;
  }

  /** Frees whose memory is back in the pool under a condition: by stream, the last first. */
  public List<Extent> settle(Predicate<PoolFree> condition) {
    List<Extent> back = new ArrayList<>();
    Comparator<PoolFree> byStream = Comparator.comparingLong(PoolFree::streamId);
    for (PoolFree free : frees.reversed().stream().filter(condition).sorted(byStream).toList()) {
      for (Piece piece : in(free.place())) {
        if (piece.free == free) {
          pieces.remove(piece.place.offset());
          back.add(piece.place);
        }
      }
      frees.remove(free);
    }
    return back;
  }

  public void ordered(SimOp waiting, SimOp dependency) {
    frees.forEach(free -> free.ordered(waiting, dependency));
  }
}

package io.cuvette.instrument.internal.memory;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiPredicate;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Values of ranges of addresses. Neighbours of equal values are one range, so that the map is as
 * large as what differs. Not thread-safe.
 *
 * @param <V> an immutable value
 */
public final class RangeMap<V> {
  private static final int FEW = 256;

  /** By their first address; no two overlap. */
  private final TreeMap<Long, Piece<V>> pieces = new TreeMap<>();

  /** So many pieces there are before it is worth looking which are needed. */
  private int many = FEW;

  private static final class Piece<V> {
    final long from;
    long end;
    V value;

    Piece(long from, long end, V value) {
      this.from = from;
      this.end = end;
      this.value = value;
    }
  }

  /** Sees the parts of a range. */
  interface Visitor<V> {
    void visit(long from, long bytes, V value);
  }

  /** The first value in a range that fulfils a condition; null if there is none. */
  @Nullable V find(long from, long bytes, Predicate<V> condition) {
    for (Piece<V> piece : pieces.tailMap(firstOf(from), true).values()) {
      if (piece.from >= from + bytes || bytes <= 0) {
        break;
      }
      if (condition.test(piece.value)) {
        return piece.value;
      }
    }
    return null;
  }

  /** Visits the parts of a range that have a value, cut to it, in order. */
  void visit(long from, long bytes, Visitor<V> visitor) {
    long end = from + bytes;
    for (Piece<V> piece : pieces.tailMap(firstOf(from), true).values()) {
      if (piece.from >= end) {
        break;
      }
      long start = Math.max(from, piece.from);
      visitor.visit(start, Math.min(end, piece.end) - start, piece.value);
    }
  }

  /** Gives a whole range one value. */
  void set(long from, long bytes, V value) {
    clear(from, bytes);
    if (bytes > 0) {
      add(new Piece<>(from, from + bytes, value));
      joinAt(from);
      joinAt(from + bytes);
    }
  }

  /** Takes the values of a range away. */
  void clear(long from, long bytes) {
    if (bytes > 0) {
      split(from);
      split(from + bytes);
      pieces.subMap(from, true, from + bytes, false).clear();
    }
  }

  /** Changes the value of each part of a range; null is that of a part without one. */
  void change(long from, long bytes, Function<@Nullable V, V> change) {
    if (bytes <= 0) {
      return;
    }
    long end = from + bytes;
    split(from);
    split(end);
    List<Piece<V>> gaps = new ArrayList<>();
    long at = from;
    for (Piece<V> piece : pieces.subMap(from, true, end, false).values()) {
      if (at < piece.from) {
        gaps.add(new Piece<>(at, piece.from, change.apply(null)));
      }
      piece.value = change.apply(piece.value);
      at = piece.end;
    }
    if (at < end) {
      gaps.add(new Piece<>(at, end, change.apply(null)));
    }
    gaps.forEach(this::add);
    join(pieces.subMap(firstOf(from - 1), true, end, true).values().iterator(), Object::equals);
  }

  /**
   * Forgets what is needed no more, each time the map has become twice as large.
   *
   * @param needed what is left of a value; null for nothing
   * @param alike whether two values are as good as one
   */
  void tidy(Function<V, @Nullable V> needed, BiPredicate<V, V> alike) {
    if (pieces.size() <= many) {
      return;
    }
    for (Iterator<Piece<V>> all = pieces.values().iterator(); all.hasNext(); ) {
      Piece<V> piece = all.next();
      V left = needed.apply(piece.value);
      if (left == null) {
        all.remove();
      } else {
        piece.value = left;
      }
    }
    join(pieces.values().iterator(), alike);
    many = Math.max(FEW, 2 * pieces.size());
  }

  private void add(Piece<V> piece) {
    pieces.put(piece.from, piece);
  }

  /** The key to begin at for all that ends behind an address. */
  private long firstOf(long address) {
    Map.Entry<Long, Piece<V>> below = pieces.floorEntry(address);
    return below != null && below.getValue().end > address ? below.getKey() : address;
  }

  /** Has no piece reach over an address. */
  private void split(long at) {
    Map.Entry<Long, Piece<V>> below = pieces.lowerEntry(at);
    if (below != null && below.getValue().end > at) {
      Piece<V> piece = below.getValue();
      add(new Piece<>(at, piece.end, piece.value));
      piece.end = at;
    }
  }

  /** Makes the pieces that meet at an address one if their values are equal. */
  private void joinAt(long address) {
    Map.Entry<Long, Piece<V>> left = pieces.lowerEntry(address);
    if (left != null) {
      join(pieces.subMap(left.getKey(), true, address, true).values().iterator(), Object::equals);
    }
  }

  private static <V> void join(Iterator<Piece<V>> some, BiPredicate<V, V> alike) {
    Piece<V> left = null;
    while (some.hasNext()) {
      Piece<V> piece = some.next();
      if (left != null && left.end == piece.from && alike.test(left.value, piece.value)) {
        left.end = piece.end;
        some.remove();
      } else {
        left = piece;
      }
    }
  }
}

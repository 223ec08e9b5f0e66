package io.cuvette.sim;

import java.util.Comparator;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * How small plain allocations share pages of device memory: the smallest gap that is large enough,
 * in no more than one page. A page goes back when nothing is left in it. Guarded by the driver's
 * lock.
 */
final class SmallPieces {
  private final long pageBytes;
  private final TreeMap<Long, Long> gapsByOffset = new TreeMap<>();
  private final TreeSet<Piece> gapsBySize =
      new TreeSet<>(Comparator.comparingLong(Piece::bytes).thenComparingLong(Piece::offset));
  private long nextPage;

  /**
   * A part of a page. Immutable.
   *
   * @param offset where it is, counted over all pages there ever were
   * @param bytes how long it is
   */
  record Piece(long offset, long bytes) {}

  SmallPieces(long pageBytes) {
    this.pageBytes = pageBytes;
  }

  /** Whether there is a gap for some bytes. */
  boolean hasRoom(long bytes) {
    return gapsBySize.ceiling(new Piece(0, bytes)) != null;
  }

  /** Takes a piece out of a gap, or out of a new page where no gap is large enough. */
  Piece take(long bytes) {
    Piece gap = gapsBySize.ceiling(new Piece(0, bytes));
    if (gap == null) {
      gap = new Piece(nextPage, pageBytes);
      nextPage += pageBytes;
    } else {
      remove(gap);
    }
    if (gap.bytes > bytes) {
      add(new Piece(gap.offset + bytes, gap.bytes - bytes));
    }
    return new Piece(gap.offset, bytes);
  }

  /**
   * Gives a piece back.
   *
   * @return whether its page is empty, and gone
   */
  boolean give(Piece piece) {
    long from = piece.offset;
    long to = piece.offset + piece.bytes;
    Map.@Nullable Entry<Long, Long> before = gapsByOffset.lowerEntry(from);
    if (before != null && before.getKey() + before.getValue() == from && from % pageBytes != 0) {
      from = before.getKey();
      remove(new Piece(from, before.getValue()));
    }
    Long behind = to % pageBytes == 0 ? null : gapsByOffset.get(to);
    if (behind != null) {
      remove(new Piece(to, behind));
      to += behind;
    }
    boolean isEmpty = to - from == pageBytes;
    if (!isEmpty) {
      add(new Piece(from, to - from));
    }
    return isEmpty;
  }

  private void add(Piece gap) {
    gapsByOffset.put(gap.offset, gap.bytes);
    gapsBySize.add(gap);
  }

  private void remove(Piece gap) {
    gapsByOffset.remove(gap.offset);
    gapsBySize.remove(gap);
  }
}

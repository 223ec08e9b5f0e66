package io.cuvette.instrument;

import io.cuvette.instrument.Access.Kind;
import io.cuvette.instrument.Access.Range;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The uses of one block that may still be running: of each byte those that no later use stands in
 * for. Whatever is not finished is kept, however much that is. Not thread-safe.
 */
final class AccessHistory {
  private final RangeMap<List<Access>> uses = new RangeMap<>();

  /** An earlier use that nothing orders before this one although it matters. */
  @Nullable Access race(Range range, Lane lane, StreamOrder order) {
    Kind kind = range.kind();
    return find(range, use -> use.conflictsWith(kind) && !order.isBefore(use, lane));
  }

  /** A use of a range that is not known to be finished. */
  @Nullable Access unfinished(Range range, StreamOrder order) {
    return find(range, use -> !order.isFinished(use));
  }

  /**
   * A write of bytes of a range that is not known to be finished.
   *
   * @param allocated where the memory was allocated, in stream order, which writes nothing
   */
  @Nullable Access unfinishedWrite(Range range, Site allocated, StreamOrder order) {
    return find(
        range,
        use ->
            use.range().kind() == Kind.WRITE && use.site() != allocated && !order.isFinished(use));
  }

  /** A use that is not known to be finished although what the host does matters to it. */
  @Nullable Access besideHost(Range range, StreamOrder order) {
    Kind kind = range.kind();
    return find(range, use -> use.conflictsWith(kind) && !order.isFinished(use));
  }

  /** A use of a range that is not known to be finished before later work of a stream. */
  @Nullable Access unordered(Range range, Lane lane, StreamOrder order) {
    return find(range, use -> !order.isBefore(use, lane));
  }

  private @Nullable Access find(Range range, Predicate<Access> condition) {
    List<Access> found =
        uses.find(range.address(), range.bytes(), all -> first(all, condition) != null);
    return found == null ? null : first(found, condition);
  }

  private static @Nullable Access first(List<Access> all, Predicate<Access> condition) {
    for (Access use : all) {
      if (condition.test(use)) {
        return use;
      }
    }
    return null;
  }

  void add(Access access, StreamOrder order) {
    Range range = access.range();
    uses.change(range.address(), range.bytes(), before -> with(before, access, order));
    uses.tidy(all -> unfinished(all, order), AccessHistory::areAlike);
  }

  private static List<Access> with(
      @Nullable List<Access> before, Access access, StreamOrder order) {
    if (before == null) {
      return List.of(access);
    }
    if (first(before, access::isLike) != null) {
      return before; // nothing can come between the two
    }
    List<Access> left = new ArrayList<>(before.size() + 1);
    for (Access use : before) {
      if (!order.isFinished(use) && !isSuperseded(use, access)) {
        left.add(use);
      }
    }
    left.add(access);
    return left;
  }

  /** Whether whatever a use conflicts with conflicts with a later one of the same bytes as well. */
  private static boolean isSuperseded(Access use, Access by) {
    return by.range().kind().standsInFor(use.range().kind())
        && (use.lane() == by.lane() || by.lane().seen.covers(use.lane(), use.number()));
  }

  private static @Nullable List<Access> unfinished(List<Access> all, StreamOrder order) {
    if (first(all, order::isFinished) == null) {
      return all;
    }
    List<Access> left = all.stream().filter(use -> !order.isFinished(use)).toList();
    return left.isEmpty() ? null : left;
  }

  /** Whether nothing can come between the uses of the one and those of the other. */
  private static boolean areAlike(List<Access> some, List<Access> others) {
    if (some.size() != others.size()) {
      return false;
    }
    for (Access use : some) {
      if (first(others, use::isLike) == null) {
        return false;
      }
    }
    return true;
  }
}

package io.cuvette.instrument.internal.memory;

import io.cuvette.instrument.internal.order.Access;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.order.HappensBefore;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The uses of one block that may still be running: of each byte those that no later use stands in
 * for. Whatever is not finished is kept, however much that is. Not thread-safe.
 */
public final class AccessHistory {
  /** So many launches are kept of those that later ones stand in for: they touch other bytes. */
  private static final int MOST_LAUNCHES = 32;

  /** All but reads. */
  private final RangeMap<List<Access>> uses = new RangeMap<>();

  /** By stream: dozens may read the same bytes at once, each some thousand times. */
  private final Map<Lane, Reads> reads = new LinkedHashMap<>();

  /** An earlier use, not held up, that nothing orders before this one although it matters. */
  @Nullable Access race(Range range, Lane lane, HappensBefore order) {
    return find(
        range,
        use -> use.mattersNow(range.kind()) && !order.isBeforeNext(use, lane) && !use.isHeld());
  }

  /**
   * Gives all uses that may matter to another one, by what launches touch, and are not before.
   *
   * @param late whether also those of which that is known already, as of those that are held up
   */
  void meeting(Access access, boolean late, HappensBefore order, Consumer<Access> each) {
    Range range = access.range();
    Set<Access> seen = new HashSet<>(); // for a use may be that of many bytes
    Predicate<Access> passing =
        use -> {
          boolean meets =
              use.mayMeet(access) || ((late || use.isHeld()) && use.conflictsWith(range.kind()));
          if (meets && seen.add(use) && !order.isBefore(use, access.lane())) {
            each.accept(use);
          }
          return false;
        };
    uses.find(range.address(), range.bytes(), all -> first(all, passing) != null);
    reads.values().forEach(all -> all.byRange.find(range.address(), range.bytes(), passing));
  }

  /** A use of a range that is not known to be finished. */
  @Nullable Access unfinished(Range range, HappensBefore order) {
    return find(range, use -> !order.isFinished(use));
  }

  /**
   * A write of bytes of a range that is not known to be finished.
   *
   * @param allocated where the memory was allocated, in stream order, which writes nothing
   */
  @Nullable Access unfinishedWrite(Range range, CallTrace allocated, HappensBefore order) {
    return find(
        range,
        use -> mayWrite(use.range().kind()) && use.site() != allocated && !order.isFinished(use));
  }

  /** Gives the stream of each write of bytes of a range that is not known to be finished. */
  void writers(Range range, HappensBefore order, Consumer<Lane> each) {
    Predicate<Access> passing =
        use -> {
          if (mayWrite(use.range().kind()) && !order.isFinished(use)) {
            each.accept(use.lane());
          }
          return false;
        };
    uses.find(range.address(), range.bytes(), all -> first(all, passing) != null);
  }

  /** A kernel may write what it was given. */
  private static boolean mayWrite(Kind kind) {
    return kind == Kind.WRITE || kind == Kind.USE;
  }

  /**
   * A use that is not known to be finished although what the host does matters to it; of launches
   * that is known later, and what the host still holds up comes behind what it does now.
   */
  @Nullable Access besideHost(Range range, HappensBefore order) {
    return find(
        range, use -> use.mattersNow(range.kind()) && !order.isFinished(use) && !use.isHeld());
  }

  /**
   * A use of a range that is not known to be finished before later work of a stream; none if the
   * host may learn that before it lets the stream go on.
   */
  @Nullable Access unordered(Range range, Lane lane, HappensBefore order) {
    return order.isClosedBeforeNext(lane)
        ? null
        : find(range, use -> !order.isBeforeNext(use, lane));
  }

  private @Nullable Access find(Range range, Predicate<Access> condition) {
    List<Access> found =
        uses.find(range.address(), range.bytes(), all -> first(all, condition) != null);
    if (found != null) {
      return first(found, condition);
    }
    for (Reads read : reads.values()) {
      Access use = read.find(range, condition);
      if (use != null) {
        return use;
      }
    }
    return null;
  }

  private static @Nullable Access first(List<Access> all, Predicate<Access> condition) {
    for (Access use : all) {
      if (condition.test(use)) {
        return use;
      }
    }
    return null;
  }

  void add(Access access, HappensBefore order) {
    Range range = access.range();
    if (range.kind() == Kind.READ && access.gates().isEmpty()) {
      addRead(access, order);
      return;
    }
    uses.change(range.address(), range.bytes(), before -> with(before, access, order));
    uses.tidy(all -> unfinished(all, order), AccessHistory::areAlike);
  }

  private void addRead(Access access, HappensBefore order) {
    Reads known = reads.get(access.lane());
    if (known == null) {
      reads.values().removeIf(each -> order.isFinished(each.last));
      known = new Reads(access);
      reads.put(access.lane(), known);
    }
    known.add(access, order);
  }

  private static List<Access> with(
      @Nullable List<Access> before, Access access, HappensBefore order) {
    if (before == null) {
      return List.of(access);
    }
    if (first(before, access::isLike) != null) {
      return before; // nothing can come between the two
    }
    List<Access> left = new ArrayList<>(before.size() + 1);
    int launches = MOST_LAUNCHES;
    for (Access use : before.reversed()) {
      boolean isLaunch = use.watcher() != null && access.range().kind() == Kind.USE;
      boolean isKept = !isSuperseded(use, access) || (isLaunch && --launches >= 0);
      if (isKept && !order.isFinished(use)) {
        left.addFirst(use);
      }
    }
    left.add(access);
    return left;
  }

  /** Whether whatever a use conflicts with conflicts with a later one of the same bytes as well. */
  private static boolean isSuperseded(Access use, Access by) {
    return by.range().kind().standsInFor(use.range().kind())
        && (use.isHeld() || !by.isHeld())
        && by.lane().seen.covers(use.lane(), use.number());
  }

  private static @Nullable List<Access> unfinished(List<Access> all, HappensBefore order) {
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

  /** The reads of one stream, which conflict with no other: of each byte the last counts. */
  private static final class Reads {
    private final RangeMap<Access> byRange = new RangeMap<>();
    private Access last;

    Reads(Access first) {
      this.last = first;
    }

    void add(Access access, HappensBefore order) {
      Range range = access.range();
      last = access;
      byRange.set(range.address(), range.bytes(), access);
      byRange.tidy(use -> order.isFinished(use) ? null : use, Access::isLike);
    }

    /** What is true of no last read of a stream is true of none before it. */
    @Nullable Access find(Range range, Predicate<Access> condition) {
      return condition.test(last) ? byRange.find(range.address(), range.bytes(), condition) : null;
    }
  }
}

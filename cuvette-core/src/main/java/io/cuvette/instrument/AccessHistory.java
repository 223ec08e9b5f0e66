package io.cuvette.instrument;

import io.cuvette.instrument.Access.Kind;
import io.cuvette.instrument.Access.Range;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The uses of one block that may still be running, oldest first. What later uses stand in for is
 * dropped, and the oldest beyond a limit. Not thread-safe.
 */
final class AccessHistory {
  private static final int LIMIT = 4096;

  private final List<Access> accesses = new ArrayList<>();

  /** An earlier use that nothing orders before this one although it matters. */
  @Nullable Access race(Range range, Lane lane, StreamOrder order) {
    for (Access earlier : accesses) {
      if (earlier.conflictsWith(range) && !order.isBefore(earlier, lane)) {
        return earlier;
      }
    }
    return null;
  }

  /** A use of a range that is not known to be finished. */
  @Nullable Access unfinished(Range range, StreamOrder order) {
    for (Access access : accesses) {
      if (access.range().overlaps(range) && !order.isFinished(access)) {
        return access;
      }
    }
    return null;
  }

  /** A write of bytes of a range that is not known to be finished. */
  @Nullable Access unfinishedWrite(Range range, StreamOrder order) {
    for (Access access : accesses) {
      boolean writes = access.range().kind() == Kind.WRITE;
      if (writes && access.range().overlaps(range) && !order.isFinished(access)) {
        return access;
      }
    }
    return null;
  }

  /** A use of a range that is not known to be finished before later work of a stream. */
  @Nullable Access unordered(Range range, Lane lane, StreamOrder order) {
    for (Access access : accesses) {
      if (access.range().overlaps(range) && !order.isBefore(access, lane)) {
        return access;
      }
    }
    return null;
  }

  void add(Access access, StreamOrder order) {
    accesses.removeIf(earlier ->
        order.isFinished(earlier)
            || (earlier.isSupersededBy(access.range())
                && access.lane().seen.covers(earlier.lane(), earlier.number())));
    if (accesses.size() == LIMIT) {
      accesses.removeFirst();
    }
    accesses.add(access);
  }
}

package io.cuvette.internal.paged;

import io.cuvette.internal.base.Failures;
import io.cuvette.internal.channel.PoolHandle;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.Supplier;

/**
 * The descriptors of pieces that were exported. A piece has one as long as it is mapped, so that
 * who imports it twice can compare; it ends before the piece does, whose memory it would keep.
 * Thread-safe, for threads that use different pieces or use them alike.
 */
final class ExportedPieces {
  private final ConcurrentSkipListMap<Long, PoolHandle> open = new ConcurrentSkipListMap<>();

  /**
   * A handle of the caller's own for a piece.
   *
   * @param export has the driver export it
   */
  PoolHandle of(long at, Supplier<PoolHandle> export) {
    PoolHandle known = open.get(at);
    return (known != null ? known : add(at, export.get())).duplicate();
  }

  private PoolHandle add(long at, PoolHandle made) {
    PoolHandle before;
    try {
      before = open.putIfAbsent(at, made);
    } catch (OutOfMemoryError e) {
      Failures.runAfter(e, made::close);
      throw e;
    }
    if (before == null) {
      return made;
    }
    made.close(); // another thread was first
    return before;
  }

  /** Closes what there is of a range that is about to be unmapped. */
  void drop(long from, long bytes) {
    for (Map.Entry<Long, PoolHandle> first = open.ceilingEntry(from);
        first != null && first.getKey() < from + bytes;
        first = open.ceilingEntry(from)) {
      first.getValue().close(); // first: what fails is tried again
      open.remove(first.getKey());
    }
  }
}

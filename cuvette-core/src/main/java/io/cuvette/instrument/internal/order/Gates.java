package io.cuvette.instrument.internal.order;

import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/** What a stream waits for until the host lets it go on, if it does. Not thread-safe. */
final class Gates {
  private final Lane lane;

  /** By the number of the work before: whether it is closed. */
  private final NavigableMap<Long, BooleanSupplier> all = new TreeMap<>();

  /** The number of the first: looked at for each use of bytes behind any gate. */
  private long first = Long.MAX_VALUE;

  Gates(Lane lane) {
    this.lane = lane;
  }

  /** Has what the stream queues next come behind a gate. */
  void add(BooleanSupplier closed) {
    all.put(lane.next(), closed);
    Clock _ = lane.known(); // what comes next is not like what is before
    first = all.firstKey();
  }

  /** Drops the first as far as they are open, or known to be; whether none is left. */
  boolean passOpen() {
    Map.Entry<Long, BooleanSupplier> next = all.firstEntry();
    while (next != null && (!next.getValue().getAsBoolean() || lane.isFinished(next.getKey()))) {
      all.remove(next.getKey());
      next = all.firstEntry();
    }
    first = next == null ? Long.MAX_VALUE : next.getKey();
    return next == null;
  }

  /** Whether any is closed of those before what a stream has queued; null if all are open now. */
  @Nullable BooleanSupplier before(Lane other) {
    long last = other.seen.last(lane);
    if (first > last || passOpen() || first > last) {
      return null;
    }
    Map<Long, BooleanSupplier> before = all.headMap(last, true);
    return () -> before.values().stream().anyMatch(BooleanSupplier::getAsBoolean);
  }
}

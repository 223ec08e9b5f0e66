package io.cuvette.instrument.internal.order;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What the next work of a stream comes behind by the rules of the legacy default stream. It is
 * asked for before the driver has that work, and taken by the stream afterwards: what other threads
 * queue meanwhile may come behind the work, and what they wait for meanwhile is not behind the
 * turn. Not thread-safe.
 */
public final class Turn {
  private final @Nullable Lane lane;

  /** What the legacy default stream is behind, or, of its own turn, what ended streams were. */
  private final @Nullable Clock standard;

  /** What the legacy default stream has to come behind. */
  private final List<News> news = new ArrayList<>();

  private record News(Lane of, Clock known) {}

  /** A turn of a stream; of none, it is behind nothing. */
  Turn(@Nullable Lane lane, @Nullable Clock standard) {
    this.lane = lane;
    this.standard = standard;
  }

  /** Adds what a stream has queued and the legacy default stream is not behind yet. */
  void add(Lane other) {
    if (other != lane && other.blocking && !other.seenByLegacy.isAs(other.seen)) {
      news.add(new News(other, other.known().copy()));
    }
  }

  /** All that the work comes behind. */
  public Clock work() {
    return lane == null ? new Clock() : with(lane.known().copy());
  }

  private Clock with(Clock clock) {
    if (standard != null) {
      clock.merge(standard);
    }
    news.forEach(each -> clock.merge(each.known));
    return clock;
  }

  /** Has the stream come behind it, once the driver has the work. */
  public void take() {
    if (lane != null) {
      Clock _ = with(lane.seen);
      news.forEach(each -> each.of.seenByLegacy = each.known);
    }
  }
}

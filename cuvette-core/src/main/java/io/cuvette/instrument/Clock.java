package io.cuvette.instrument;

import java.util.HashMap;
import java.util.Map;

/**
 * A vector clock: of each stream, the number of its last piece of work that is known to come
 * before. Not thread-safe.
 */
final class Clock {
  private final Map<Lane, Long> numbers = new HashMap<>();

  /** Whether a piece of work comes before. */
  boolean covers(Lane lane, long number) {
    return numbers.getOrDefault(lane, 0L) >= number;
  }

  void raise(Lane lane, long number) {
    numbers.merge(lane, number, Math::max);
  }

  void merge(Clock other) {
    if (other != this) {
      other.numbers.forEach((lane, number) -> {
        if (!lane.isRetired()) {
          raise(lane, number);
        }
      });
    }
  }

  void forget(Lane lane) {
    numbers.remove(lane);
  }

  Clock copy() {
    Clock copy = new Clock();
    copy.merge(this);
    return copy;
  }
}

package io.cuvette.instrument.internal.order;

import java.util.HashMap;
import java.util.Map;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A vector clock: of each stream, the number of its last piece of work that is known to come
 * before. What many streams learned from one they share. Not thread-safe.
 */
public final class Clock {
  private final Map<Lane, Long> numbers = new HashMap<>();

  /** What is known besides {@link #numbers}; it never changes, and is on no other base. */
  private @Nullable Clock base;

  /** The last base of others that was merged. */
  private @Nullable Clock merged;

  /** What this is a copy of; null if it is none that others can be based on. */
  private final @Nullable Clock original;

  private @Nullable Clock frozen;
  private long changes;

  /** The changes until {@link #frozen} was made, here and there. */
  private long frozenAt;

  /** No work, to which more is added. */
  public Clock() {
    this(null);
  }

  private Clock(@Nullable Clock original) {
    this.original = original;
  }

  /** Whether a piece of work comes before. */
  public boolean covers(Lane lane, long number) {
    return last(lane) >= number;
  }

  /** The last piece of a stream's work that comes before; 0 if none does. */
  long last(Lane lane) {
    long own = numbers.getOrDefault(lane, 0L);
    return base == null ? own : Math.max(own, base.last(lane));
  }

  void raise(Lane lane, long number) {
    if (!covers(lane, number)) {
      changes++;
      if (numbers.put(lane, number) == null && Integer.bitCount(numbers.size()) == 1) {
        numbers.keySet().removeIf(Lane::isRetired); // each time it has become twice as large
      }
    }
  }

  /** Learns all that another clock knows now. */
  public void merge(Clock other) {
    Clock under = other.base;
    if (under != null && under != base && under != merged && under.original != this) {
      mergeNumbers(under);
      merged = under;
    }
    mergeNumbers(other);
  }

  private void mergeNumbers(Clock other) {
    other.numbers.forEach((lane, number) -> {
      if (!lane.isRetired()) {
        raise(lane, number);
      }
    });
  }

  /** Gives the last piece of work of each stream; of some twice, of which the larger counts. */
  void forEach(BiConsumer<Lane, Long> each) {
    numbers.forEach(each);
    if (base != null) {
      base.forEach(each);
    }
  }

  /** Learns all that a frozen clock knows, of one that knows more each time. */
  void follow(Clock next) {
    Clock before = base;
    boolean isOfSame = before != null && before.original == next.original;
    if (before != null && isOfSame && before.frozenAt >= next.frozenAt) {
      return; // two turns, of which that which was asked for last was taken first
    }
    base = next;
    if (before != null && !isOfSame) {
      mergeNumbers(before);
    }
    numbers.entrySet().removeIf(known -> next.covers(known.getKey(), known.getValue()));
    changes++;
  }

  /** What this knows now, which does not change. */
  Clock frozen() {
    Clock known = frozen;
    if (known == null || frozenAt != changes) {
      known = new Clock(this);
      known.merge(this);
      known.frozenAt = changes;
      frozen = known;
      frozenAt = changes;
    }
    return known;
  }

  /** How often this learned something. */
  long changes() {
    return changes;
  }

  void forget(Lane lane) {
    numbers.remove(lane);
  }

  public Clock copy() {
    Clock copy = new Clock();
    copy.base = base;
    copy.mergeNumbers(this);
    return copy;
  }
}

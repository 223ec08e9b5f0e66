package io.cuvette.instrument.internal.order;

import java.util.Arrays;

/**
 * A vector clock: of each stream, the number of its last piece of work that is known to come
 * before. The numbers are in short arrays that never change, so clocks that know the same of some
 * streams share them, and a copy costs nothing. Not thread-safe.
 */
public final class Clock {
  private static final int LANES = 32;
  private static final long[] NOTHING = new long[LANES];

  /** By the places of the streams. */
  private long[][] parts = {};

  /** Whether a piece of work comes before. */
  public boolean covers(Lane lane, long number) {
    return last(lane) >= number;
  }

  /** The last piece of a stream's work that comes before; 0 if none does. */
  long last(Lane lane) {
    return part(indexOf(lane))[lane.place.index() % LANES];
  }

  private static int indexOf(Lane lane) {
    return lane.place.index() / LANES;
  }

  private long[] part(int index) {
    return index < parts.length ? parts[index] : NOTHING;
  }

  void raise(Lane lane, long number) {
    if (!covers(lane, number)) {
      long[] part = part(indexOf(lane)).clone();
      part[lane.place.index() % LANES] = number;
      parts = with(parts, indexOf(lane), part);
    }
  }

  private static long[][] with(long[][] all, int index, long[] part) {
    long[][] changed = Arrays.copyOf(all, Math.max(all.length, index + 1));
    Arrays.fill(changed, Math.min(all.length, index), index, NOTHING);
    changed[index] = part;
    return changed;
  }

  /** Learns all that another clock knows now. */
  public void merge(Clock other) {
    if (parts == other.parts) {
      return;
    }
    int length = Math.max(parts.length, other.parts.length);
    long[][] all = new long[length][];
    boolean isAsHere = true;
    boolean isAsThere = true;
    for (int i = 0; i < length; i++) {
      all[i] = last(part(i), other.part(i));
      isAsHere &= all[i] == part(i);
      isAsThere &= all[i] == other.part(i);
    }
    if (!isAsHere) {
      parts = isAsThere ? other.parts : all;
    }
  }

  /** Of each two numbers the larger: one of the arrays if that has them all. */
  private static long[] last(long[] some, long[] others) {
    if (some == others) {
      return some;
    }
    boolean isAsSome = true;
    boolean isAsOthers = true;
    for (int i = 0; i < LANES; i++) {
      isAsSome &= some[i] >= others[i];
      isAsOthers &= some[i] <= others[i];
    }
    if (isAsSome || isAsOthers) {
      return isAsSome ? some : others;
    }
    long[] all = new long[LANES];
    Arrays.setAll(all, i -> Math.max(some[i], others[i]));
    return all;
  }

  /** Whether both are known to know the same: one is a copy of the other, or learned it last. */
  boolean isAs(Clock other) {
    return parts == other.parts;
  }

  public Clock copy() {
    Clock copy = new Clock();
    copy.parts = parts;
    return copy;
  }
}

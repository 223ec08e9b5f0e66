package io.cuvette.internal.space;

import java.util.Arrays;
import java.util.OptionalLong;
import java.util.function.LongSupplier;

/** Free runs of a page or more, in the order in which they became so. Not thread-safe. */
public final class AgeList {
  /** In place of a time: the time at which it is added. */
  public static final long NOW = Long.MIN_VALUE;

  private final LongSupplier clock;
  private int[] older = new int[16];
  private int[] newer = new int[16];
  private long[] times = new long[16];
  private int oldest = Space.NONE;
  private int newest = Space.NONE;

  AgeList(LongSupplier clock) {
    this.clock = clock;
  }

  /** Makes room for runs below a number. */
  void reserve(int end) {
    if (end > times.length) {
      int room = Math.max(end, times.length * 2);
      int[] olderThen = Arrays.copyOf(older, room);
      int[] newerThen = Arrays.copyOf(newer, room);
      times = Arrays.copyOf(times, room);
      older = olderThen;
      newer = newerThen;
    }
  }

  int oldest() {
    return oldest;
  }

  /** The next newer one. */
  int after(int run) {
    return newer[run];
  }

  /** When a run became free, if it is here or was here last. */
  long time(int run) {
    return run < times.length ? times[run] : 0;
  }

  /** Whether a run was free for some time; any time if that is empty. */
  boolean isIdle(int run, OptionalLong nanos) {
    return nanos.isEmpty() || clock.getAsLong() - times[run] >= nanos.getAsLong();
  }

  void add(int run, long time) {
    times[run] = time == NOW ? clock.getAsLong() : time;
    older[run] = newest;
    newer[run] = Space.NONE;
    if (newest == Space.NONE) {
      oldest = run;
    } else {
      newer[newest] = run;
    }
    newest = run;
  }

  void remove(int run) {
    int before = older[run];
    int after = newer[run];
    if (before == Space.NONE) {
      oldest = after;
    } else {
      newer[before] = after;
    }
    if (after == Space.NONE) {
      newest = before;
    } else {
      older[after] = before;
    }
  }
}

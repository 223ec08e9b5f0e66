package io.cuvette.instrument.internal.memory;

import io.cuvette.driver.LaunchWatcher;
import io.cuvette.instrument.internal.order.Access;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Beginnings;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongUnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Which bytes a launch read, wrote, or changed atomically: of the first {@value #MOST_PAGES} pages
 * it touched, a bit for each byte. Not thread-safe; who reads it waits for the launch first.
 */
final class TouchedBytes extends Beginnings implements LaunchWatcher {
  /** So 3 MiB of bits at most. */
  private static final int MOST_PAGES = 2_048;

  private static final int PAGE_SHIFT = 12;
  private static final int WORDS = (1 << PAGE_SHIFT) / Long.SIZE;

  /** A node of a graph may run once more while it is read. */
  private final Map<Long, Page> pages = new ConcurrentHashMap<>();

  /** Which of all launches it is. */
  final long launch;

  private long lastPage = -1;
  private @Nullable Page last;

  /** What it did in each run that is over: a node's may choose by what it finds in memory. */
  private volatile TouchedBytes always = this;

  private boolean hasRun;

  /** Set before the driver has the launch. */
  private @Nullable Runnable telling;

  /** How many runs were noted and are not over. */
  private final AtomicLong pending = new AtomicLong();

  /** What it does in this run, if that is not the first. */
  private @Nullable TouchedBytes now;

  private static final class Page {
    private final long[] read = new long[WORDS];
    private final long[] written = new long[WORDS];
    private final long[] atomic = new long[WORDS];

    long[] bits(Touch touch) {
      return switch (touch) {
        case READ -> read;
        case WRITE -> written;
        case ATOMIC -> atomic;
      };
    }

    Page and(Page other) {
      Page and = new Page();
      for (Touch touch : Touch.values()) {
        long[] some = bits(touch);
        long[] others = other.bits(touch);
        Arrays.setAll(and.bits(touch), at -> some[at] & others[at]);
      }
      return and;
    }
  }

  TouchedBytes(long launch) {
    this.launch = launch;
  }

  /** Notes that a launch which the driver has will run it. */
  void expect() {
    pending.incrementAndGet();
  }

  /** Has it tell once, as it touches its first byte. */
  void tells(Runnable begun) {
    telling = begun;
  }

  /** A byte that was touched and is not before the end of what may be from there on; 0 if none. */
  long outside(LongUnaryOperator end) {
    for (Map.Entry<Long, Page> page : pages.entrySet()) {
      Page on = page.getValue();
      long from = page.getKey() << PAGE_SHIFT;
      long inside = from;
      for (long at = from; at < from + (1 << PAGE_SHIFT); at++) {
        int word = (int) (at - from) >>> 6;
        if (((on.read[word] | on.written[word] | on.atomic[word]) >>> at & 1) != 0) {
          inside = at < inside ? inside : end.applyAsLong(at);
          if (inside == at) {
            return at;
          }
        }
      }
    }
    return 0;
  }

  /** All that another use does to pages that were touched here: a launch tells it. */
  TouchedBytes of(Access use) {
    if (use.watcher() instanceof TouchedBytes told) {
      return told;
    }
    long from = use.range().address();
    long to = from + use.range().bytes();
    TouchedBytes all = new TouchedBytes(launch);
    pages.forEach((number, page) -> {
      long first = number << PAGE_SHIFT;
      for (long at = Math.max(from, first); at < Math.min(to, first + (1 << PAGE_SHIFT)); at++) {
        boolean isAtomic = (page.atomic[(int) (at - first) >>> 6] >>> at & 1) != 0;
        boolean isRead = use.range().kind() == Kind.READ && !isAtomic; // which is a write as well
        all.touched(at, 1, isRead ? Touch.READ : Touch.WRITE);
      }
    });
    return all;
  }

  /** A byte that two launches touched in a way that needs an order. */
  record Conflict(long address, Touch first, Touch second) {}

  @Override
  public void ran() {
    if (hasRun) {
      always = always.both(now == null ? new TouchedBytes(launch) : now);
    }
    hasRun = true;
    now = null;
    pending.updateAndGet(runs -> Math.max(runs - 1, 0)); // a conditional node runs it more often
  }

  private TouchedBytes both(TouchedBytes other) {
    TouchedBytes both = new TouchedBytes(launch);
    pages.forEach((number, page) -> {
      Page there = other.pages.get(number);
      if (there != null) {
        both.pages.put(number, page.and(there));
      }
    });
    return both;
  }

  @Override
  public void touched(long address, int bytes, Touch touch) {
    if (areAny() && pending.get() == 0) {
      haveBegun();
    }
    Runnable begun = telling;
    if (begun != null) {
      telling = null;
      begun.run();
    }
    if (hasRun) {
      always = always == this ? both(this) : always; // this has more from now on
      now = now == null ? new TouchedBytes(launch) : now;
      now.touched(address, bytes, touch);
    }
    long page = address >>> PAGE_SHIFT;
    if (page != lastPage) {
      lastPage = page;
      last = pages.get(page);
      if (last == null && pages.size() < MOST_PAGES) {
        last = new Page();
        pages.put(page, last);
      }
    }
    if (last != null) {
      long mask = ((1L << bytes) - 1) << (address & (Long.SIZE - 1));
      last.bits(touch)[(int) (address >>> 6) & (WORDS - 1)] |= mask;
    }
  }

  /**
   * The first byte, on any page, that one of two launches wrote and the other touched, each in all
   * its runs that are over; null if there is none. What both only read or changed atomically needs
   * no order, and whether a read beside an atomic change does, only the program knows.
   */
  @Nullable Conflict conflict(TouchedBytes second) {
    for (Map.Entry<Long, Page> page : always.pages.entrySet()) {
      Page other = second.always.pages.get(page.getKey());
      Conflict found =
          other == null ? null : conflict(page.getKey() << PAGE_SHIFT, page.getValue(), other);
      if (found != null) {
        return found;
      }
    }
    return null;
  }

  private static @Nullable Conflict conflict(long page, Page first, Page second) {
    for (Touch one : Touch.values()) {
      for (Touch other : Touch.values()) {
        if (one == Touch.WRITE || other == Touch.WRITE) {
          for (int i = 0; i < WORDS; i++) {
            long both = first.bits(one)[i] & second.bits(other)[i];
            if (both != 0) {
              long offset = (long) i * Long.SIZE + Long.numberOfTrailingZeros(both);
              return new Conflict(page + offset, one, other);
            }
          }
        }
      }
    }
    return null;
  }
}

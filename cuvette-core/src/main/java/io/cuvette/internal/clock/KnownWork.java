package io.cuvette.internal.clock;

import java.util.Arrays;

/**
 * How far the work of some streams comes before what a stream does next: a vector clock. To forget
 * some of it is safe, which bounds its size. Immutable.
 */
public final class KnownWork {
  /** So many streams are remembered; of more, those not heard of for longest are forgotten. */
  private static final int MOST = 64;

  static final KnownWork NONE = new KnownWork(new StreamClock[0], new long[0], new long[0]);

  private final StreamClock[] clocks;
  private final long[] noted;
  private final long[] queued;

  private KnownWork(StreamClock[] clocks, long[] noted, long[] queued) {
    this.clocks = clocks;
    this.noted = noted;
    this.queued = queued;
  }

  /** Whether work comes before, by either of its numbers; see {@link Moment}. */
  boolean covers(StreamClock clock, long useNoted, long useQueued) {
    int at = find(clocks, clocks.length, clock);
    return at >= 0 && (useNoted <= noted[at] || useQueued <= queued[at]);
  }

  private static int find(StreamClock[] in, int count, StreamClock clock) {
    for (int i = 0; i < count; i++) {
      if (in[i] == clock) {
        return i;
      }
    }
    return -1;
  }

  /** This and what comes before a moment, for a stream that waits for it. */
  KnownWork with(Moment moment, StreamClock own) {
    KnownWork other = moment.known();
    Union union = new Union(1 + other.clocks.length + clocks.length, own);
    union.add(moment.clock(), moment.noted(), moment.queued());
    other.addTo(union);
    addTo(union); // last: what is new comes first
    return union.first(MOST);
  }

  private void addTo(Union union) {
    for (int i = 0; i < clocks.length; i++) {
      union.add(clocks[i], noted[i], queued[i]);
    }
  }

  /** All of it is done. */
  void done() {
    for (int i = 0; i < clocks.length; i++) {
      clocks[i].done(noted[i], queued[i]);
    }
  }

  /** The later of each, without what is done by now. */
  private static final class Union {
    private final StreamClock own;
    private final StreamClock[] clocks;
    private final long[] noted;
    private final long[] queued;
    private int count;

    Union(int most, StreamClock own) {
      this.own = own;
      this.clocks = new StreamClock[most];
      this.noted = new long[most];
      this.queued = new long[most];
    }

    void add(StreamClock clock, long alsoNoted, long alsoQueued) {
      if (clock == own || clock.isDoneTo(alsoNoted, alsoQueued)) {
        return;
      }
      int at = find(clocks, count, clock);
      if (at < 0) {
        at = count++;
        clocks[at] = clock;
      }
      noted[at] = Math.max(noted[at], alsoNoted);
      queued[at] = Math.max(queued[at], alsoQueued);
    }

    KnownWork first(int most) {
      int size = Math.min(most, count);
      return new KnownWork(
          Arrays.copyOf(clocks, size), Arrays.copyOf(noted, size), Arrays.copyOf(queued, size));
    }
  }
}

package io.cuvette.internal.pinnedpool;

import io.cuvette.internal.base.SpinLock;
import io.cuvette.internal.base.Spread;
import io.cuvette.internal.pool.Budget;
import java.util.Arrays;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * The stripes of a store: one until threads meet in it, then one for each that allocates at the
 * same time as others. A chunk that one has cached is taken over by any other before the pool
 * grows. Thread-safe.
 */
final class PinnedStripes {
  private final Budget held;

  /** Guards that stripes are made. Taken before the locks of these, and those in their order. */
  private final SpinLock making = new SpinLock();

  private volatile @Nullable PinnedStripe[] all;

  /** Whether the pool was torn down. */
  private volatile boolean over;

  PinnedStripes(Budget held) {
    this.held = held;
    this.all = new PinnedStripe[] {new PinnedStripe(this, 0)};
  }

  Budget held() {
    return held;
  }

  boolean isOver() {
    return over;
  }

  /** Whether threads have met in a stripe. */
  boolean areSeveral() {
    return all.length > 1;
  }

  /** The stripe of this thread. */
  PinnedStripe mine() {
    @Nullable PinnedStripe[] now = all;
    int place = Spread.mine(now.length);
    PinnedStripe mine = now[place];
    return mine != null ? mine : make(place);
  }

  boolean isMine(PinnedStripe stripe) {
    return Spread.mine(all.length) == stripe.index;
  }

  private PinnedStripe make(int place) {
    PinnedStripe made = new PinnedStripe(this, place);
    making.lock();
    try {
      @Nullable PinnedStripe[] now = all;
      PinnedStripe there = now[place];
      if (there == null) {
        now[place] = made;
      }
      return there == null ? made : there;
    } finally {
      making.unlock();
    }
  }

  /** Two threads met in a stripe. If there is no Java heap for more of them, the next are. */
  void met() {
    if (all.length == 1) {
      try {
        widen(new PinnedStripe[Spread.PLACES]);
      } catch (OutOfMemoryError e) {
        // They meet again.
      }
    }
  }

  private void widen(@Nullable PinnedStripe[] wide) {
    making.lock();
    try {
      if (all.length == 1) {
        wide[0] = all[0];
        all = wide;
      }
    } finally {
      making.unlock();
    }
  }

  /** Brings a cached chunk from another stripe; false if none was seen. */
  boolean bring(int sizeClass, PinnedStripe to) {
    @Nullable PinnedStripe[] now = all;
    for (int i = 1; i < now.length; i++) {
      PinnedStripe from = now[(to.index + i) & (now.length - 1)];
      if (from != null && from.mayHave(sizeClass) && bring(sizeClass, from, to)) {
        return true;
      }
    }
    return false;
  }

  private static boolean bring(int sizeClass, PinnedStripe from, PinnedStripe to) {
    PinnedStripe first = from.index < to.index ? from : to;
    PinnedStripe second = first == from ? to : from;
    first.lock();
    second.lock();
    try {
      PinnedChunk chunk = from.bring(sizeClass);
      if (chunk != null) {
        to.push(chunk);
      }
      return chunk != null;
    } finally {
      second.unlock();
      first.unlock();
    }
  }

  /** Removes a cached chunk, to be freed to upstream; null if there is none. */
  @Nullable PinnedChunk remove(int sizeClass) {
    for (PinnedStripe stripe : all) {
      PinnedChunk chunk = stripe == null ? null : stripe.remove(sizeClass);
      if (chunk != null) {
        return chunk;
      }
    }
    return null;
  }

  /** Lets nothing in or out until {@link #resume}; what threads have freed is in. */
  void pause() {
    making.lock();
    for (PinnedStripe stripe : all) {
      if (stripe != null) {
        stripe.lock();
        stripe.drain();
      }
    }
  }

  void resume() {
    for (PinnedStripe stripe : all) {
      if (stripe != null) {
        stripe.unlock();
      }
    }
    making.unlock();
  }

  /** Adds up a number of all stripes, while they are paused. */
  long sum(ToLongFunction<PinnedStripe> number) {
    return Arrays.stream(all)
        .mapToLong(stripe -> stripe == null ? 0 : number.applyAsLong(stripe))
        .sum();
  }

  /** Lets nothing in any more, for a pool that is torn down. */
  void end() {
    over = true;
    pause();
    try {
      for (PinnedStripe stripe : all) {
        if (stripe != null) {
          stripe.end();
        }
      }
    } finally {
      resume();
    }
  }
}

package io.cuvette.internal.elastic;

import io.cuvette.internal.pool.Budget;
import io.cuvette.internal.space.Victim;
import org.jspecify.annotations.Nullable;

/**
 * The places and pieces that threads are mapping and unmapping. What there is no room for in the
 * Java heap when it ends is ended with a later call. Guarded by the heap's lock.
 */
final class Moves {
  private final Budget held;
  private int moving;
  private @Nullable Plan plans;
  private @Nullable Victim victims;

  Moves(Budget held) {
    this.held = held;
  }

  void begin() {
    moving++;
  }

  boolean isNone() {
    return moving == 0;
  }

  /** If it could not be unmapped, it is free again. */
  void end(Victim victim) {
    try {
      victim.end();
    } catch (OutOfMemoryError e) {
      victim.next = victims;
      victims = victim;
      return;
    }
    moving--;
    if (!victim.isUnmapped()) {
      held.leaveForGood(-victim.bytes);
    }
  }

  /** Nothing is mapped. */
  void abort(Plan plan) {
    try {
      plan.growth.abort();
    } catch (OutOfMemoryError e) {
      plan.next = plans;
      plans = plan;
      return;
    }
    end(plan);
  }

  /** Its block is counted, or there is none. */
  void end(Plan plan) {
    moving--;
    plan.cache.live--;
  }

  /** Ends what nobody is at any more. */
  void endLeft() {
    if (plans == null && victims == null) {
      return;
    }
    Plan plan = plans;
    plans = null;
    for (Plan next; plan != null; plan = next) {
      next = plan.next;
      abort(plan);
    }
    Victim victim = victims;
    victims = null;
    for (Victim next; victim != null; victim = next) {
      next = victim.next;
      end(victim);
    }
  }
}

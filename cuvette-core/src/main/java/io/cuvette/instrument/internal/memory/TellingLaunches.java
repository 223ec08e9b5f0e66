package io.cuvette.instrument.internal.memory;

import io.cuvette.instrument.internal.order.Clock;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * What launches came behind that were given memory which the host sees, and run: the host may learn
 * from a word there that it is done, and nobody else does. Launches add to it; else not
 * thread-safe.
 */
public final class TellingLaunches {
  private final Queue<Clock> told = new ConcurrentLinkedQueue<>();

  /** Has a launch that the driver is about to have tell, as it touches its first byte. */
  void begins(TouchedBytes touched, Clock before) {
    touched.tells(() -> told.add(before));
  }

  /** Whether there is anything to learn. */
  public boolean haveTold() {
    return !told.isEmpty();
  }

  /** What the launches that run, or have run, came behind; of each only once. */
  Clock told() {
    Clock done = new Clock();
    for (Clock before = told.poll(); before != null; before = told.poll()) {
      done.merge(before);
    }
    return done;
  }
}

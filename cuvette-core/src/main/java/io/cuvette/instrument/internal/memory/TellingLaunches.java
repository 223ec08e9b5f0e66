package io.cuvette.instrument.internal.memory;

import io.cuvette.instrument.internal.order.Clock;
import io.cuvette.instrument.internal.order.Lane;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.Queue;

/**
 * Launches of kernels that were given memory which the host sees: once one runs, the host may learn
 * from a word there that the work before it is done, and nobody else does. Not thread-safe.
 */
public final class TellingLaunches {
  private final Map<Lane, Queue<Launch>> pending = new HashMap<>();

  private record Launch(TouchedBytes touched, Clock before) {}

  /** Notes a launch before the driver has it, and what it comes behind. */
  void begins(TouchedBytes touched, Lane lane, Clock before) {
    Launch launch = new Launch(touched, before);
    pending.computeIfAbsent(lane, _ -> new ArrayDeque<>()).add(launch);
  }

  /** Whether there is anything to learn. */
  public boolean haveTold() {
    return pending.entrySet().stream().anyMatch(each -> hasTold(each.getKey(), each.getValue()));
  }

  private static boolean hasTold(Lane lane, Queue<Launch> all) {
    Launch first = all.element();
    return first.touched.isAny() || lane.isBehind(first.before);
  }

  /** What the launches that run, or have run, came behind; of each only once. */
  Clock told() {
    Clock done = new Clock();
    pending
        .entrySet()
        .removeIf(each -> {
          Queue<Launch> all = each.getValue();
          while (!all.isEmpty() && hasTold(each.getKey(), all)) {
            done.merge(all.remove().before);
          }
          return all.isEmpty();
        });
    return done;
  }
}

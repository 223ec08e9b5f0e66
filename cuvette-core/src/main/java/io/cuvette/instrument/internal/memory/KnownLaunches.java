package io.cuvette.instrument.internal.memory;

import io.cuvette.driver.LaunchWatcher;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.internal.order.Access;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.order.HappensBefore;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import io.cuvette.instrument.internal.report.Findings;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Launches that nothing orders, held against each other once both have run: what they touched is
 * known then, if the driver knows it at all. Of those that are not known to be finished, the last
 * {@value #MOST} of each stream count, and the last {@value #MOST_PAIRS} pairs. Not thread-safe.
 */
public final class KnownLaunches {
  private static final int MOST = 16;
  private static final int MOST_PAIRS = 256;

  private final HappensBefore order;
  private final Map<Lane, ArrayDeque<Launch>> recent = new HashMap<>();
  private final ArrayDeque<Pair> pairs = new ArrayDeque<>();

  private record Launch(Access access, List<Range> arguments, TouchedBytes touched) {
    boolean mayMeet(Launch other) {
      return arguments.stream().anyMatch(each -> other.arguments.stream().anyMatch(each::overlaps));
    }
  }

  private record Pair(Launch first, Launch second) {}

  public KnownLaunches(HappensBefore order) {
    this.order = order;
  }

  /** Who is told what a launch touches. */
  public static LaunchWatcher watcher() {
    return new TouchedBytes();
  }

  /** Notes a launch that was queued. */
  public void queued(Work work, Lane lane, long number, LaunchWatcher watcher) {
    if (work.ranges().isEmpty() || !(watcher instanceof TouchedBytes touched)) {
      return;
    }
    Access access = new Access(lane, number, new Range(0, 0, Kind.USE, false), work.site);
    Launch launch = new Launch(access, List.copyOf(work.ranges()), touched);
    recent.forEach((other, launches) -> {
      if (other != lane) {
        launches.stream()
            .filter(earlier -> !order.isBefore(earlier.access, lane) && earlier.mayMeet(launch))
            .forEach(earlier -> limited(pairs, MOST_PAIRS).add(new Pair(earlier, launch)));
      }
    });
    limited(recent.computeIfAbsent(lane, _ -> new ArrayDeque<>()), MOST).add(launch);
  }

  private static <T> ArrayDeque<T> limited(ArrayDeque<T> all, int most) {
    if (all.size() >= most) {
      all.removeFirst();
    }
    return all;
  }

  /** Compares what has been found to be done. */
  public void finished(Findings findings) {
    pairs.removeIf(pair -> {
      boolean done = order.isFinished(pair.first.access) && order.isFinished(pair.second.access);
      if (done) {
        compare(pair.first, pair.second, findings);
      }
      return done;
    });
    recent
        .values()
        .removeIf(launches -> {
          launches.removeIf(launch -> order.isFinished(launch.access));
          return launches.isEmpty();
        });
  }

  private static void compare(Launch first, Launch second, Findings findings) {
    TouchedBytes.Conflict conflict = first.touched.conflict(second.touched);
    if (conflict != null) {
      CallTrace earlier = first.access.site();
      findings.addLate(
          Misuse.RACE,
          second.access.site(),
          "the %s of 0x%x by the kernel is not ordered after the %s by a kernel on %s"
              .formatted(
                  text(conflict.second()),
                  conflict.address(),
                  text(conflict.first()),
                  first.access.lane().name),
          earlier);
    }
  }

  private static String text(LaunchWatcher.Touch touch) {
    return touch == LaunchWatcher.Touch.ATOMIC
        ? "atomic update"
        : touch.name().toLowerCase(Locale.ROOT);
  }
}

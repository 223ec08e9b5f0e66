package io.cuvette.instrument.internal.memory;

import io.cuvette.driver.LaunchWatcher;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.internal.order.Access;
import io.cuvette.instrument.internal.order.HappensBefore;
import io.cuvette.instrument.internal.report.Findings;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;

/**
 * Launches and other work that nothing orders, held against each other once both have run: what the
 * launches touched is known then. Of those that are not known to be finished, the last {@value
 * #MOST_PAIRS} pairs count. Not thread-safe.
 */
public final class KnownLaunches {
  private static final int MOST_PAIRS = 1_024;

  private final HappensBefore order;
  private final LinkedHashMap<List<Object>, Pair> pairs = new LinkedHashMap<>();
  private boolean isTold;

  /** One of the two is a launch, of which the driver tells what it touches. */
  private record Pair(Access first, Access second) {}

  public KnownLaunches(HappensBefore order) {
    this.order = order;
  }

  /** Who is told what a launch touches. */
  public static LaunchWatcher watcher() {
    return new TouchedBytes();
  }

  /** Notes a use before it is one of those of its block. */
  void used(Access access, AccessHistory before) {
    isTold |= access.watcher() != null;
    if (isTold) {
      before.meeting(
          access,
          order,
          earlier -> pairs.put(List.of(work(earlier), work(access)), new Pair(earlier, access)));
    }
    while (pairs.size() > MOST_PAIRS) {
      var _ = pairs.pollFirstEntry();
    }
  }

  /** What is the same for all that a launch uses. */
  private static Object work(Access use) {
    return use.watcher() == null ? use : use.watcher();
  }

  /** Compares what has been found to be done. */
  public void finished(Findings findings) {
    pairs
        .values()
        .removeIf(pair -> {
          boolean done = order.isFinished(pair.first) && order.isFinished(pair.second);
          if (done) {
            compare(pair.first, pair.second, findings);
          }
          return done;
        });
  }

  private static void compare(Access first, Access second, Findings findings) {
    if (!((first.watcher() != null ? first : second).watcher() instanceof TouchedBytes told)) {
      return;
    }
    TouchedBytes.Conflict conflict = told.of(first).conflict(told.of(second));
    if (conflict != null) {
      findings.addLate(
          Misuse.RACE,
          second.site(),
          "the %s of 0x%x%s is not ordered after the %s%s on %s"
              .formatted(
                  text(second, conflict.second()),
                  conflict.address(),
                  second.watcher() == null ? "" : " by the kernel",
                  text(first, conflict.first()),
                  first.watcher() == null ? "" : " by a kernel",
                  first.lane().name),
          first.site());
    }
  }

  private static String text(Access use, LaunchWatcher.Touch touch) {
    if (use.watcher() == null) {
      return use.range().kind().toString();
    }
    return touch == LaunchWatcher.Touch.ATOMIC
        ? "atomic update"
        : touch.name().toLowerCase(Locale.ROOT);
  }
}

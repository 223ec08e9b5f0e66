package io.cuvette.instrument.internal.memory;

import io.cuvette.driver.LaunchWatcher;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.internal.order.Access;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.order.HappensBefore;
import io.cuvette.instrument.internal.report.CallTrace;
import io.cuvette.instrument.internal.report.Findings;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;

/**
 * Launches, and other work or accesses of the host that nothing orders, held against each other
 * once both are done: what the launches touched is known then. Of those that are not known to be
 * finished, the last {@value #MOST_PAIRS} pairs count. Not thread-safe.
 */
public final class KnownLaunches {
  private static final int MOST_PAIRS = 16_384;

  private final HappensBefore order;
  private final LinkedHashMap<List<Object>, Pair> pairs = new LinkedHashMap<>();
  private boolean isTold;

  /** One of the two is a launch, of which the driver tells what it touches; both use the block. */
  private record Pair(Access first, Access second, KnownBlock block) {}

  public KnownLaunches(HappensBefore order) {
    this.order = order;
  }

  /** Who is told what a launch touches. */
  public static LaunchWatcher watcher() {
    return new TouchedBytes();
  }

  /** Notes a use before it is one of those of its block. */
  void used(Access access, AccessHistory before, KnownBlock block) {
    isTold |= access.watcher() != null;
    if (isTold) {
      before.meeting(access, order, earlier -> meet(earlier, access, block));
    }
    while (pairs.size() > MOST_PAIRS) {
      var _ = pairs.pollFirstEntry();
    }
  }

  /** Notes what the host reads or writes at this moment. */
  void usedByHost(Range range, CallTrace here, AccessHistory before, KnownBlock block) {
    used(new Access(order.host, 0, range, here), before, block);
  }

  private void meet(Access earlier, Access access, KnownBlock block) {
    if (access.lane() == order.host) {
      access.site().takeStack();
    }
    pairs.put(List.of(work(earlier), work(access)), new Pair(earlier, access, block));
  }

  /** What is the same for all that a launch uses, or for all that the host does with a range. */
  private Object work(Access use) {
    LaunchWatcher watcher = use.watcher();
    Object other = use.lane() == order.host ? use.range() : use;
    return watcher == null ? other : watcher;
  }

  /** Compares what has been found to be done. */
  public void finished(Findings findings) {
    pairs
        .values()
        .removeIf(pair -> {
          boolean done = order.isFinished(pair.first) && order.isFinished(pair.second);
          if (done) {
            compare(pair.first, pair.second, pair.block, findings);
          }
          return done;
        });
  }

  private void compare(Access first, Access second, KnownBlock block, Findings findings) {
    if (!((first.watcher() != null ? first : second).watcher() instanceof TouchedBytes told)) {
      return;
    }
    TouchedBytes.Conflict conflict = told.of(first).conflict(told.of(second));
    if (conflict == null) {
      return;
    }
    String earlier =
        text(first, conflict.first())
            + (first.watcher() == null ? " on " : " by a kernel on ")
            + first.lane().name;
    String later = "the %s of 0x%x".formatted(text(second, conflict.second()), conflict.address());
    if (second.lane() == order.host) {
      String rule =
          later + " by the host may come before the " + earlier + " is done (" + block + ")";
      findings.addLate(Misuse.HOST_RACE, second.site(), rule, first.site(), block.allocated);
    } else {
      String by = second.watcher() == null ? "" : " by the kernel";
      String rule = later + by + " is not ordered after the " + earlier + " (" + block + ")";
      findings.addLate(Misuse.RACE, second.site(), rule, first.site(), block.allocated);
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

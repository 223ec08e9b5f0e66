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
import java.util.Map;
import java.util.function.Consumer;

/**
 * Uses that nothing orders and that are held against each other later: launches once both are done,
 * since what they touched is known then, and work behind a gate once the use before it is, since
 * the host may have known that when it opened the gate. Of those that are not known to be finished,
 * the last {@value #MOST_PAIRS} pairs count. Not thread-safe.
 */
public final class KnownLaunches {
  private static final int MOST_PAIRS = 16_384;

  private final BlockLedger blocks;
  private final HappensBefore order;
  private final LinkedHashMap<List<Object>, Pair> pairs = new LinkedHashMap<>();
  private boolean isTold;

  /** The progress of the work when it was looked at last. */
  private long progress;

  /** The last of each launch, or of those of a node, that is not known to be finished. */
  private final Map<LaunchWatcher, Access> pending = new LinkedHashMap<>();

  /** Two that use a block. */
  private record Pair(Access first, Access second, KnownBlock block) {
    boolean areLaunches() {
      return first.watcher() != null || second.watcher() != null;
    }
  }

  KnownLaunches(BlockLedger blocks, HappensBefore order) {
    this.blocks = blocks;
    this.order = order;
  }

  /** Who is told what a launch touches. */
  public LaunchWatcher watcher() {
    return new TouchedBytes(order.launches.incrementAndGet());
  }

  /** Notes a use before it is one of those of its block. */
  void used(Access access, AccessHistory before, KnownBlock block) {
    isTold |= access.watcher() != null;
    if (access.watcher() != null) {
      pending.put(access.watcher(), access);
    }
    boolean isGated = !access.gates().isEmpty();
    if (isTold || order.hasGates()) {
      Consumer<Access> meet = earlier -> meet(new Pair(earlier, access, block));
      before.meeting(access, isGated, order, meet);
    }
    while (pairs.size() > MOST_PAIRS) {
      var _ = pairs.pollFirstEntry();
    }
  }

  /** Notes what the host reads or writes at this moment. */
  void usedByHost(Range range, CallTrace here, AccessHistory before, KnownBlock block) {
    used(new Access(order.host, 0, range, here), before, block);
  }

  private void meet(Pair pair) {
    Access access = pair.second;
    boolean isByHost = access.lane() == order.host;
    boolean isHeld = pair.first.isHeld();
    if (isByHost && isHeld) {
      return; // the host may open the gate when it has done this
    }
    if (isByHost || isHeld || !access.gates().isEmpty()) {
      access.site().takeStack();
    }
    pairs.put(List.of(work(pair.first), work(access)), pair);
  }

  /** What is the same for all that a launch uses, or for all that the host does with a range. */
  private Object work(Access use) {
    LaunchWatcher watcher = use.watcher();
    Object other = use.lane() == order.host ? use.range() : use;
    return watcher == null ? other : watcher;
  }

  /** Whether all that a launch touched in memory of pools was lent, at some time since it. */
  private boolean isChecked(Access launch, Findings findings) {
    boolean isDone = order.isFinished(launch);
    if (isDone && launch.watcher() instanceof TouchedBytes told) {
      long at = told.outside(point -> lentUntil(point, told.launch));
      KnownBlock whole = at == 0 ? null : blocks.liveAround(at);
      if (whole != null) {
        report(launch, at, whole.lastAround(at), findings);
      }
    }
    return isDone;
  }

  private static void report(Access launch, long at, KnownBlock block, Findings findings) {
    CallTrace freed = block.freed();
    String rule = freed == null ? "nobody has these bytes of" : "freed";
    rule = "the kernel on %s touched 0x%x: %s %s".formatted(launch.lane().name, at, rule, block);
    findings.addLate(
        freed == null ? Misuse.OUT_OF_BOUNDS : Misuse.USE_AFTER_FREE,
        launch.site(),
        rule,
        freed == null ? block.allocated : freed);
  }

  private long lentUntil(long point, long launch) {
    KnownBlock whole = blocks.liveAround(point); // one that is not known may be anybody's
    return whole == null ? point + 1 : whole.lentUntil(point, launch);
  }

  /** Compares what has been found to be done. */
  public void finished(Findings findings) {
    if (progress == order.progress()) {
      return;
    }
    progress = order.progress();
    pending.values().removeIf(launch -> isChecked(launch, findings));
    pairs.values().removeIf(pair -> isOrdered(pair) || isCompared(pair, findings));
  }

  /** Whether the one is done before a gate of the other has opened. */
  private boolean isOrdered(Pair pair) {
    return (order.isFinished(pair.first) && pair.second.isHeld())
        || (order.isFinished(pair.second) && pair.first.isHeld());
  }

  private boolean isCompared(Pair pair, Findings findings) {
    boolean isFirstDone = order.isFinished(pair.first);
    boolean isSecondDone = order.isFinished(pair.second);
    boolean isDone = pair.areLaunches() ? isFirstDone && isSecondDone : isFirstDone || isSecondDone;
    if (isDone) {
      compare(pair, findings);
    }
    return isDone;
  }

  private void compare(Pair pair, Findings findings) {
    Access first = pair.first;
    Access second = pair.second;
    if (!pair.areLaunches()) {
      String earlier = first.range().kind() + " on " + first.lane().name;
      report(pair, "the " + second.range(), earlier, findings);
    } else if ((first.watcher() != null ? first : second).watcher() instanceof TouchedBytes told) {
      TouchedBytes.Conflict conflict = told.of(first).conflict(told.of(second));
      if (conflict != null) {
        String by = first.watcher() == null ? " on " : " by a kernel on ";
        String earlier = text(first, conflict.first()) + by + first.lane().name;
        String what = text(second, conflict.second());
        report(pair, "the %s of 0x%x".formatted(what, conflict.address()), earlier, findings);
      }
    }
  }

  private void report(Pair pair, String later, String earlier, Findings findings) {
    boolean isByHost = pair.second.lane() == order.host;
    String by = pair.second.watcher() == null ? "" : " by the kernel";
    String rule =
        isByHost
            ? later + " by the host may come before the " + earlier + " is done"
            : later + by + " is not ordered after the " + earlier;
    findings.addLate(
        isByHost ? Misuse.HOST_RACE : Misuse.RACE,
        pair.second.site(),
        rule + " (" + pair.block + ")",
        pair.first.site(),
        pair.block.allocated);
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

package io.cuvette.testkit.seeds;

import io.cuvette.testkit.seeds.ThreadsStep.Kind;
import io.cuvette.testkit.seeds.ThreadsStep.Lane;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Which steps of a plan come before which, by the rules of CUDA and Java alone: of each the moment
 * of its call and, if it is queued, the moment at which it is done. Whatever two threads do without
 * an order comes in none, also in one stream. Not thread-safe.
 */
final class ThreadsOrder {
  private final List<ThreadsStep> steps;
  private final @Nullable ThreadsStep wrong;
  private final @Nullable Lane unblocked;
  private final Map<ThreadsStep, BitSet> calls = new HashMap<>();
  private final Map<ThreadsStep, BitSet> dones = new HashMap<>();

  /** Two steps that use the same cell in no order. */
  record Race(ThreadsStep first, ThreadsStep second) {}

  /**
   * The order of steps, to which more may be added at the end.
   *
   * @param wrong the step that is left out, or, if it is a record, comes before the one before it
   * @param unblocked the stream that does not wait for the default stream although it should
   */
  ThreadsOrder(List<ThreadsStep> steps, @Nullable ThreadsStep wrong, @Nullable Lane unblocked) {
    this.steps = steps;
    this.wrong = wrong;
    this.unblocked = unblocked;
  }

  private static int callOf(ThreadsStep step) {
    return 2 * step.number;
  }

  private static int doneOf(ThreadsStep step) {
    return 2 * step.number + 1;
  }

  /** Whether one call returns before another begins. */
  boolean isCalledBefore(ThreadsStep first, @Nullable ThreadsStep second) {
    return second != null && called(second).get(callOf(first));
  }

  /** Whether one is over when another is called. */
  boolean isKnownAt(ThreadsStep first, @Nullable ThreadsStep second) {
    return second != null && called(second).get(first.isQueued() ? doneOf(first) : callOf(first));
  }

  /** Whether one is over before another begins. */
  boolean isBefore(ThreadsStep first, ThreadsStep second) {
    BitSet before = second.isQueued() ? done(second) : called(second);
    return before.get(first.isQueued() ? doneOf(first) : callOf(first));
  }

  /** Whether work of two streams waits for each other, whichever is queued first. */
  boolean takeTurns(@Nullable Lane one, @Nullable Lane other) {
    return one != null
        && other != null
        && (one.equals(other)
            || ((one.isLegacy() || other.isLegacy()) && isBlocking(one) && isBlocking(other)));
  }

  private boolean isBlocking(Lane lane) {
    return lane.isBlocking() && !lane.equals(unblocked);
  }

  private boolean isLeftOut(ThreadsStep step) {
    return step == wrong && step.kind != Kind.RECORD;
  }

  /** What is over when a call has returned, it included. */
  private BitSet called(ThreadsStep step) {
    BitSet known = calls.get(step);
    if (known != null) {
      return known;
    }
    BitSet all = new BitSet();
    if (step.previous != null) {
      all.or(called(step.previous));
    }
    step.data.forEach(each -> all.or(called(each)));
    if (!isLeftOut(step)) {
      addAwaited(step, all);
    }
    all.set(callOf(step));
    calls.put(step, all);
    return all;
  }

  private void addAwaited(ThreadsStep step, BitSet all) {
    ThreadsStep from = step.from;
    switch (step.kind) {
      case HOST_FOR_STEP -> all.or(called(Objects.requireNonNull(from)));
      case HOST_FOR_WORK -> all.or(done(Objects.requireNonNull(from)));
      case HOST_FOR_EVENT -> {
        if (all.get(callOf(Objects.requireNonNull(from)))) {
          all.or(done(from));
        }
      }
      case HOST_FOR_STREAM -> {
        Lane lane = step.lane;
        for (ThreadsStep each : queuedBefore(step, (BitSet) all.clone())) {
          boolean isLegacys = lane != null && lane.isLegacy() && takeTurns(lane, each.lane);
          if (lane == null || lane.equals(each.lane) || isLegacys) {
            all.or(done(each));
          }
        }
      }
      default -> {}
    }
  }

  /** The work of all streams whose calls have returned. */
  private List<ThreadsStep> queuedBefore(ThreadsStep step, BitSet called) {
    List<ThreadsStep> queued = new ArrayList<>();
    for (ThreadsStep each : steps) {
      if (each != step && each.isQueued() && !isLeftOut(each) && called.get(callOf(each))) {
        queued.add(each);
      }
    }
    return queued;
  }

  /** What is over when work is done, it included. */
  private BitSet done(ThreadsStep step) {
    BitSet known = dones.get(step);
    if (known != null) {
      return known;
    }
    BitSet called = (BitSet) called(step).clone();
    BitSet all = (BitSet) called.clone();
    if (step == wrong && step.previous != null) {
      called.clear(callOf(step.previous)); // the record comes before it
    }
    for (ThreadsStep each : queuedBefore(step, called)) {
      if (takeTurns(step.lane, each.lane)) {
        all.or(done(each));
      }
    }
    ThreadsStep from = step.from;
    if (from != null && !isLeftOut(step)) {
      switch (step.kind) {
        case STREAM_FOR_EVENT -> {
          if (called.get(callOf(from))) {
            all.or(done(from));
          }
        }
        case STREAM_FOR_WORD -> all.or(done(from));
        default -> all.or(called(from));
      }
    }
    all.set(doneOf(step));
    dones.put(step, all);
    return all;
  }

  /** All pairs that use the same in no order. */
  List<Race> races() {
    List<Race> races = new ArrayList<>();
    for (ThreadsStep second : steps) {
      for (ThreadsStep first : steps.subList(0, second.number)) {
        if (first.conflictsWith(second) && !isBefore(first, second) && !isBefore(second, first)) {
          races.add(new Race(first, second));
        }
      }
    }
    return races;
  }

  /**
   * Whether the second call may come first, or what two threads do without an order may be such
   * that the second work comes behind the first, or somebody learns before that the first is done.
   */
  boolean mayBeHidden(Race race, Predicate<ThreadsStep> maybeTells) {
    ThreadsStep second = race.second();
    boolean isSeen = second.isQueued() || second.kind == Kind.FREE;
    if (!isSeen || !race.first().isQueued() || !isCalledBefore(race.first(), second)) {
      return true;
    }
    Set<ThreadsStep> reached = new HashSet<>();
    Deque<ThreadsStep> left = new ArrayDeque<>(List.of(race.first()));
    while (!left.isEmpty()) {
      ThreadsStep before = left.remove();
      if (before != race.first() && maybeTells.test(before)) {
        return true;
      }
      for (ThreadsStep each : steps) {
        if (!isLeftOut(each)
            && (each == second || !isCalledBefore(second, each))
            && mayFollow(each, before)) {
          if (!each.isQueued() || each == second) {
            return true;
          }
          if (reached.add(each)) {
            left.add(each);
          }
        }
      }
    }
    return false;
  }

  /** Whether a step may have to wait until work is done. */
  private boolean mayFollow(ThreadsStep step, ThreadsStep work) {
    Lane lane = step.lane;
    boolean takeTurns = step != work && takeTurns(lane, work.lane);
    return switch (step.kind) {
      case HOST_FOR_STEP, FREE -> false;
      case HOST_FOR_WORK, HOST_FOR_EVENT -> step.from == work;
      case HOST_FOR_STREAM ->
          (lane == null || lane.equals(work.lane) || (lane.isLegacy() && takeTurns))
              && !isCalledBefore(step, work);
      default -> step.from == work || (takeTurns && !isCalledBefore(step, work));
    };
  }
}

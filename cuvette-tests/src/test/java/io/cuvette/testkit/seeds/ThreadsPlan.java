package io.cuvette.testkit.seeds;

import io.cuvette.testkit.seeds.ThreadsOps.Block;
import io.cuvette.testkit.seeds.ThreadsOps.HostOp;
import io.cuvette.testkit.seeds.ThreadsOps.Op;
import io.cuvette.testkit.seeds.ThreadsOrder.Race;
import io.cuvette.testkit.seeds.ThreadsStep.Action;
import io.cuvette.testkit.seeds.ThreadsStep.Kind;
import io.cuvette.testkit.seeds.ThreadsStep.Lane;
import io.cuvette.testkit.seeds.ThreadsStep.Use;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * A random plan of what several threads do at once, such that all that uses a cell is ordered, by
 * one of many ways. A step waits for earlier ones of the plan alone, so that no run stands still.
 * Not thread-safe.
 */
final class ThreadsPlan {
  private static final int MOST_ORDERED = 3;
  private static final int[] WORDS = {4, 4, 64, 300};

  /**
   * A step left out or too early, or a stream that is not blocking, and the one race of that.
   *
   * @param isCertain whether the sanitizer has to find it in each run
   */
  record Wrong(@Nullable ThreadsStep step, @Nullable Lane unblocked, Race race, boolean isCertain) {
    String kind() {
      return step == null ? "UNBLOCKED" : step.kind.toString();
    }
  }

  final SplittableRandom random;
  final ThreadsOps ops;
  final int threads;
  final List<ThreadsStep> steps = new ArrayList<>();
  final List<Lane> lanes = new ArrayList<>();
  final List<Block> live = new ArrayList<>();

  /** Whether streams wait for steps of the host. */
  final boolean hasGates;

  /** Whether threads wait for all of the device; then no stream may be captured, or held up. */
  final boolean waitsForDevice;

  /**
   * Whether functions of the host tell threads something. The driver may run them one after the
   * other, so none does where one holds a stream up.
   */
  final boolean hasTellingFunctions;

  /** The words of a cell. */
  final int cellWords;

  int words;
  int latches;

  final ThreadsOrder order = new ThreadsOrder(steps, null, null);
  private final @Nullable ThreadsGates gates;
  private final @Nullable ThreadsStep[] last;
  private final Map<Integer, List<ThreadsStep>> users = new HashMap<>();

  /** Of each event the last record and all that wait for that. */
  final List<List<ThreadsStep>> events = new ArrayList<>();

  private final Map<ThreadsStep, Integer> recorded = new HashMap<>();
  private final Map<Block, ThreadsStep> allocated = new HashMap<>();

  ThreadsPlan(long seed) {
    random = new SplittableRandom(seed * 31 + 7);
    ops = new ThreadsOps(random);
    threads = 2 + random.nextInt(3);
    hasGates = random.nextInt(3) == 0;
    waitsForDevice = !hasGates && random.nextInt(3) == 0;
    hasTellingFunctions = !hasGates || random.nextInt(3) > 0;
    cellWords = WORDS[random.nextInt(WORDS.length)];
    last = new @Nullable ThreadsStep[threads];
    lanes.add(new Lane(0, true, true, -1));
    for (int i = 1 + random.nextInt(4); i >= 0; i--) {
      lanes.add(new Lane(lanes.size(), false, random.nextBoolean(), -1));
    }
    for (int i = 0; i < threads; i++) {
      lanes.add(new Lane(lanes.size(), false, true, i)); // the per-thread stream
      live.add(ops.newBlock(i > 0 && random.nextBoolean(), false));
    }
    live.forEach(block -> ThreadsOps.all(block).keySet().forEach(cell -> ops.values.put(cell, 0)));
    gates = hasGates ? new ThreadsGates(this) : null;
    for (int i = 25 + random.nextInt(30); i > 0; i--) {
      if (gates != null && random.nextInt(8) == 0) {
        gates.add();
      } else {
        add();
      }
    }
    if (!order.races().isEmpty()) {
      throw new AssertionError("a wrong plan: " + order.races());
    }
  }

  private void add() {
    int thread = random.nextInt(threads);
    Lane lane = lane(thread);
    switch (random.nextInt(16)) {
      case 0 -> {
        if (live.size() < threads + MOST_ORDERED) {
          allocate(thread, lane);
        }
      }
      case 1 -> {
        Block block = live.get(random.nextInt(live.size()));
        if (live.size() > 2 && (block.isOrdered() || !hasGates)) {
          free(thread, lane, block);
        }
      }
      case 2, 3, 4 -> {
        List<Block> pinned = live.stream().filter(Block::isPinned).toList();
        if (!pinned.isEmpty()) {
          HostOp op = ops.onHost(pinned.get(random.nextInt(pinned.size())));
          ThreadsStep _ = use(thread, Kind.PLAIN, null, op.uses(), op.action());
          op.effect().run();
        }
      }
      case 5, 6 -> queue(thread, lane, waitsForDevice ? ops.any(live) : ops.graph(live));
      default -> queue(thread, lane, ops.any(live));
    }
  }

  /** All streams, also those that wait for the host. */
  List<Lane> allLanes() {
    List<Lane> all = new ArrayList<>(lanes);
    if (gates != null) {
      all.addAll(gates.lanes);
    }
    return all;
  }

  /** A stream that a thread can use. */
  Lane lane(int thread) {
    List<Lane> usable = lanes.stream().filter(lane -> lane.canBeUsedBy(thread)).toList();
    return usable.get(random.nextInt(usable.size()));
  }

  private void allocate(int thread, Lane lane) {
    Block block = ops.newBlock(false, true);
    Action action = run -> run.allocate(block, run.stream(lane));
    allocated.put(block, use(thread, Kind.PLAIN, lane, ThreadsOps.all(block), action));
    queue(thread, lane, ops.fill(block));
    live.add(block);
  }

  private void free(int thread, Lane lane, Block block) {
    live.remove(block);
    Lane stream = block.isOrdered() && (hasGates || random.nextInt(4) > 0) ? lane : null;
    Kind kind = stream == null ? Kind.FREE : Kind.PLAIN;
    ThreadsStep _ =
        use(thread, kind, stream, ThreadsOps.all(block), run -> run.free(block, stream));
  }

  ThreadsStep queue(int thread, Lane lane, Op op) {
    ThreadsStep step =
        use(thread, Kind.PLAIN, lane, op.uses(), run -> op.queue().on(run, run.stream(lane)));
    op.effect().run();
    return step;
  }

  /** Adds a use of cells, behind all that is in the way. */
  private ThreadsStep use(
      int thread, Kind kind, @Nullable Lane lane, Map<Integer, Use> uses, Action action) {
    makeWay(thread, lane, uses);
    ThreadsStep step = append(next(thread, kind, lane, uses, action));
    used(step);
    return step;
  }

  void used(ThreadsStep step) {
    step.uses
        .keySet()
        .forEach(cell -> users.computeIfAbsent(cell, _ -> new ArrayList<>()).add(step));
  }

  /** Sees to it that a use comes behind all that is in the way. */
  void makeWay(int thread, @Nullable Lane lane, Map<Integer, Use> uses) {
    ThreadsWays ways = new ThreadsWays(this, order);
    ThreadsStep before = before(thread, lane, uses);
    while (before != null) {
      ways.order(before, thread, lane);
      before = before(thread, lane, uses);
    }
  }

  /** A step that is in the way of a use. */
  private @Nullable ThreadsStep before(int thread, @Nullable Lane lane, Map<Integer, Use> uses) {
    ThreadsStep next = next(thread, Kind.PLAIN, lane, uses, _ -> {});
    for (int cell : uses.keySet().stream().sorted().toList()) {
      for (ThreadsStep each : users.getOrDefault(cell, List.of()).reversed()) {
        if (each.conflictsWith(next) && !order.isBefore(each, next)) {
          return each;
        }
      }
    }
    return null;
  }

  @Nullable ThreadsStep last(int thread) {
    return last[thread];
  }

  /** A step that comes next if it is appended. */
  ThreadsStep next(
      int thread, Kind kind, @Nullable Lane lane, Map<Integer, Use> uses, Action action) {
    List<ThreadsStep> data =
        uses.keySet().stream()
            .map(cell -> allocated.get(ops.blocks.get(cell / ThreadsOps.CELLS)))
            .<ThreadsStep>mapMulti((step, each) -> {
              if (step != null) {
                each.accept(step);
              }
            })
            .distinct()
            .toList();
    return new ThreadsStep(steps.size(), thread, last[thread], kind, lane, uses, data, action);
  }

  ThreadsStep append(int thread, Kind kind, @Nullable Lane lane, Action action) {
    return append(next(thread, kind, lane, Map.of(), action));
  }

  ThreadsStep append(ThreadsStep step) {
    steps.add(step);
    last[step.thread] = step;
    return step;
  }

  /** Records an event that nobody waits for any more, or a new one. */
  ThreadsStep record(int thread, Lane lane) {
    int event = 0;
    while (event < events.size()
        && !events.get(event).stream().allMatch(each -> order.isCalledBefore(each, last[thread]))) {
      event++;
    }
    int number = event;
    ThreadsStep before = last[thread];
    boolean canBeEarly = before != null && before.kind == Kind.PLAIN && lane.equals(before.lane);
    ThreadsStep record = append(thread, Kind.RECORD, lane, run -> run.record(number, lane));
    record.canBeWrong = canBeEarly;
    if (event == events.size()) {
      events.add(new ArrayList<>());
    }
    events.get(event).add(record);
    recorded.put(record, event);
    return record;
  }

  /** Notes a wait for an event, and gives its number. */
  int waits(ThreadsStep wait, ThreadsStep record) {
    int event = recorded.get(record);
    events.get(event).add(wait.waitingFor(record));
    return event;
  }

  /** All ways to make it wrong in one place, for one race. */
  List<Wrong> wrongs() {
    List<Wrong> wrongs = new ArrayList<>();
    steps.stream().filter(step -> step.canBeWrong).forEach(step -> addWrong(step, null, wrongs));
    lanes.stream()
        .filter(lane -> lane.isBlocking() && !lane.isLegacy() && lane.owner() < 0)
        .forEach(lane -> addWrong(null, lane, wrongs));
    return wrongs;
  }

  private void addWrong(@Nullable ThreadsStep step, @Nullable Lane unblocked, List<Wrong> wrongs) {
    ThreadsOrder without = new ThreadsOrder(steps, step, unblocked);
    List<Race> races = without.races();
    if (races.size() == 1 && eventsAreRight(without)) {
      Race race = races.getFirst();
      ThreadsStep first = race.first();
      ThreadsStep second = race.second();
      boolean areQueued = first.isQueued() && second.isQueued();
      boolean takeTurns = areQueued && without.takeTurns(first.lane, second.lane);
      if ((first.isQueued() || second.isQueued()) && !takeTurns && first.mustNotMeet(second)) {
        wrongs.add(new Wrong(step, unblocked, race, !without.mayBeHidden(race, this::maybeTells)));
      }
    }
  }

  /** Whether the sanitizer may learn from work that what is before it is done. */
  private boolean maybeTells(ThreadsStep step) {
    boolean usesPinned =
        step.uses.keySet().stream()
            .anyMatch(cell -> ops.blocks.get(cell / ThreadsOps.CELLS).isPinned());
    boolean isTelling = step.kind == Kind.PLAIN && step.uses.isEmpty();
    return step.isQueued() && (usesPinned || isTelling || step.kind == Kind.STREAM_FOR_STEP);
  }

  /**
   * Whether each event is recorded again only when all that wait for it have been called, and none
   * of these finds an earlier record.
   */
  private boolean eventsAreRight(ThreadsOrder without) {
    for (List<ThreadsStep> all : events) {
      for (int i = 0; i < all.size(); i++) {
        ThreadsStep step = all.get(i);
        ThreadsStep record = step.from;
        boolean isRight =
            record == null
                ? all.subList(0, i).stream().allMatch(each -> without.isCalledBefore(each, step))
                : record == all.getFirst() || without.isCalledBefore(record, step);
        if (!isRight) {
          return false;
        }
      }
    }
    return true;
  }
}

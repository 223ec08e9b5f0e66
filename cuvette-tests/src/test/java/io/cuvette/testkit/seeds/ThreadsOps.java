package io.cuvette.testkit.seeds;

import io.cuvette.testkit.seeds.ThreadsStep.Use;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * What the threads of a plan do with cells, each of which has one value in all of its words, and
 * what the values are then. Not thread-safe.
 */
final class ThreadsOps {
  static final int CELLS = 4;

  /** Memory of the device or page-locked memory, there from the beginning or allocated in order. */
  record Block(int number, boolean isPinned, boolean isOrdered) {
    int cell(int index) {
      return number * CELLS + index;
    }
  }

  /** Queues work on a stream of a run. */
  interface Queue {
    void on(ThreadsRun run, long stream);
  }

  /** What is done with some cells, and what becomes of the values. */
  record Op(Map<Integer, Use> uses, Queue queue, Runnable effect) {}

  /** What the host does with a cell. */
  record HostOp(Map<Integer, Use> uses, ThreadsStep.Action action, Runnable effect) {}

  final List<Block> blocks = new ArrayList<>();
  final Map<Integer, Integer> values = new HashMap<>();
  private final SplittableRandom random;

  ThreadsOps(SplittableRandom random) {
    this.random = random;
  }

  Block newBlock(boolean isPinned, boolean isOrdered) {
    Block block = new Block(blocks.size(), isPinned, isOrdered);
    blocks.add(block);
    return block;
  }

  /** One work of a stream with live blocks. */
  Op any(List<Block> live) {
    int to = cell(live);
    return switch (random.nextInt(10)) {
      case 0, 1 -> fill(to);
      case 2 -> fill(live.get(random.nextInt(live.size())));
      case 3, 4 -> add(to);
      case 5, 6 -> mix(cell(live), to);
      default -> copy(cell(live), to);
    };
  }

  /** Work that writes a cell. */
  Op fill(int cell) {
    int value = random.nextInt();
    return new Op(
        Map.of(cell, Use.WRITE),
        (run, stream) -> run.fill(cell, 1, value, stream),
        () -> values.put(cell, value));
  }

  Op fill(Block block) {
    int value = random.nextInt();
    return new Op(
        all(block),
        (run, stream) -> run.fill(block.cell(0), CELLS, value, stream),
        () -> all(block).keySet().forEach(cell -> values.put(cell, value)));
  }

  private Op add(int cell) {
    int value = random.nextInt();
    return new Op(
        Map.of(cell, Use.ADD),
        (run, stream) -> run.add(cell, value, stream),
        () -> values.merge(cell, value, Integer::sum));
  }

  private Op mix(int from, int to) {
    if (from == to) {
      return fill(to);
    }
    int value = random.nextInt();
    return new Op(
        Map.of(from, Use.READ, to, Use.WRITE),
        (run, stream) -> run.mix(from, to, value, stream),
        () -> values.put(to, value(to) * 3 + value(from) + value));
  }

  private Op copy(int from, int to) {
    if (from == to) {
      return fill(to);
    }
    boolean isTyped = random.nextBoolean();
    return new Op(
        Map.of(from, Use.READ, to, Use.WRITE),
        (run, stream) -> run.copy(from, to, isTyped, stream),
        () -> values.put(to, value(from)));
  }

  /** Two works one after the other in a graph. */
  Op graph(List<Block> live) {
    List<Op> ops = random.nextBoolean() ? List.of(any(live)) : List.of(any(live), any(live));
    Map<Integer, Use> uses = new HashMap<>();
    ops.forEach(op ->
        op.uses()
            .forEach((cell, use) ->
                uses.merge(cell, use, (one, other) -> one == other ? one : Use.WRITE)));
    List<Queue> queues = ops.stream().map(Op::queue).toList();
    return new Op(
        uses,
        (run, stream) -> run.launchGraph(queues, stream),
        () -> ops.forEach(op -> op.effect().run()));
  }

  /** The host reads or writes a cell of page-locked memory. */
  HostOp onHost(Block pinned) {
    int cell = pinned.cell(random.nextInt(CELLS));
    if (random.nextBoolean()) {
      int value = random.nextInt();
      return new HostOp(
          Map.of(cell, Use.WRITE), run -> run.write(cell, value), () -> values.put(cell, value));
    }
    int expected = value(cell);
    return new HostOp(Map.of(cell, Use.READ), run -> run.check(cell, expected), () -> {});
  }

  static Map<Integer, Use> all(Block block) {
    Map<Integer, Use> uses = new HashMap<>();
    for (int i = 0; i < CELLS; i++) {
      uses.put(block.cell(i), Use.WRITE);
    }
    return uses;
  }

  private int cell(List<Block> live) {
    return live.get(random.nextInt(live.size())).cell(random.nextInt(CELLS));
  }

  int value(int cell) {
    return values.getOrDefault(cell, 0);
  }
}

package io.cuvette.sim.internal.graph;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphConditionType;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimStream;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Queues the nodes of one launch: each path of them in a stream of its own, which waits for others
 * where edges say so, and nowhere else. So every order that the graph allows comes with some seed.
 * Guarded by the driver's lock.
 */
final class Replay {
  /** A loop that runs more often counts as one without end. */
  private static final int MOST_TURNS = 1 << 20;

  private final LaunchQueue queue;

  /** What the event waits of the graph wait for: the records before the launch. */
  private final Map<EventPoint, SimOp> records;

  /** What the nodes of graphs with conditions do in this launch, as their bodies come later. */
  private final Map<ExecNode, NodeTask> tasks = new HashMap<>();

  /** A launch of a graph, which does what its nodes do now. */
  Replay(LaunchQueue queue, ExecGraph graph) {
    this.queue = queue;
    this.records = records(graph);
    boolean[] conditional = new boolean[1];
    graph.forEach(node -> conditional[0] |= node.task() instanceof NodeTask.Conditional);
    if (conditional[0]) {
      graph.forEach(node -> tasks.put(node, node.task()));
    }
  }

  /**
   * Whether parts of the launch are queued later, so that no other launch may queue anything in its
   * streams before it is done.
   */
  boolean comesInParts() {
    return !tasks.isEmpty();
  }

  private NodeTask task(ExecNode node) {
    NodeTask known = tasks.get(node);
    return known == null ? node.task() : known;
  }

  /** The last records before the launch of the events that a graph waits for. */
  private static Map<EventPoint, SimOp> records(ExecGraph graph) {
    Map<EventPoint, SimOp> records = new HashMap<>();
    graph.forEach(node -> {
      if (node.task() instanceof NodeTask.EventWait wait) {
        SimOp record = wait.event().lastRecord();
        if (record != null) {
          records.put(wait.event(), record);
        }
      }
    });
    return records;
  }

  /** Queues a graph behind an operation, and returns one that comes behind all of it. */
  SimOp run(ExecGraph graph, Lanes lanes, SimOp before) {
    Map<ExecNode, SimOp> done = new HashMap<>();
    for (ExecNode node : graph.ordered) {
      List<SimOp> after =
          node.dependencies.isEmpty()
              ? List.of(before)
              : node.dependencies.stream().map(done::get).toList();
      done.put(node, run(node, lanes, after));
    }
    List<SimOp> ends = graph.ends.stream().map(done::get).toList();
    return switch (ends.size()) {
      case 0 -> before;
      case 1 -> ends.getFirst();
      default -> {
        SimStream lane = follow(ends, before.stream.device, lanes);
        yield lanes.ends(queue.queue(SimOp.point(lane, now())));
      }
    };
  }

  /** A stream that goes on when some operations are done. */
  private SimStream follow(List<SimOp> operations, SimDevice device, Lanes lanes) {
    SimStream lane = lanes.after(operations, device, queue);
    for (SimOp each : operations) {
      if (each.stream != lane) {
        queue.queue(SimOp.waiting(lane, each, now()));
      }
    }
    return lane;
  }

  /** The operation that ends the node. */
  private SimOp run(ExecNode node, Lanes lanes, List<SimOp> after) {
    SimStream lane = follow(after, node.work().device(), lanes);
    NodeTask work = task(node);
    return switch (work) {
      case NodeTask.Child _ -> {
        SimOp start = lanes.ends(queue.queue(SimOp.point(lane, now())));
        yield run(node.graphs.getFirst(), lanes, start);
      }
      case NodeTask.Conditional conditional -> {
        lanes.close(lane);
        yield new Turns(node, conditional, lane).queue();
      }
      case NodeTask.EventRecord(EventPoint event) -> {
        SimOp record = lanes.ends(queue.queue(SimOp.point(lane, now())));
        event.recorded(record);
        yield record;
      }
      default -> lanes.ends(queue.queue(operation(work, lane)));
    };
  }

  private SimOp operation(NodeTask task, SimStream lane) {
    return switch (task) {
      case NodeTask.Work work -> work.template().again(lane, now());
      case NodeTask.Allocation memory -> SimOp.work(lane, memory.block()::allocate, 0, now());
      case NodeTask.Free memory -> SimOp.work(lane, memory.block()::free, 0, now());
      case NodeTask.EventWait wait when records.containsKey(wait.event()) ->
          SimOp.waiting(lane, records.get(wait.event()), now());
      default -> SimOp.point(lane, now());
    };
  }

  private long now() {
    return queue.hostNanos();
  }

  /** The turns of a conditional node, each queued when the one before it is done. */
  private final class Turns {
    private final ExecNode node;
    private final NodeTask.Conditional task;
    private final SimStream lane;

    /** What comes behind the last turn, and is queued with it. */
    private final SimOp end;

    /** What reads the condition next; null if that is decided. */
    private @Nullable SimOp test;

    private int turns;

    Turns(ExecNode node, NodeTask.Conditional task, SimStream lane) {
      this.node = node;
      this.task = task;
      this.lane = lane;
      this.end = SimOp.point(lane, now());
    }

    SimOp queue() {
      SimOp next = SimOp.work(lane, this::turn, 0, now());
      next.whenDone(() -> {
        if (test == next) { // it never ran, for the device has failed
          queue.drop(end);
        }
      });
      test = next;
      queue.queue(next);
      return end;
    }

    private void turn() {
      ExecGraph body = body();
      if (body != null) {
        if (++turns > MOST_TURNS) {
          throw new SimRefusal(
              CudaStatus.LAUNCH_TIMEOUT,
              "the loop of node 0x%x ran %d times".formatted(node.source.handle, MOST_TURNS));
        }
        SimOp start = Objects.requireNonNull(test);
        node.lanes.reset();
        SimOp last = Replay.this.run(body, node.lanes, start);
        if (last != start) {
          queue.queue(SimOp.waiting(lane, last, now()));
        }
      }
      test = null;
      if (body != null && task.type() == GraphConditionType.WHILE) {
        queue();
      } else {
        queue.queue(end);
      }
    }

    /** The graph of this turn; null if there is none. */
    private @Nullable ExecGraph body() {
      int value = task.condition().value();
      int index = task.type() == GraphConditionType.SWITCH ? value : value != 0 ? 0 : 1;
      return index >= 0 && index < node.graphs.size() ? node.graphs.get(index) : null;
    }
  }
}

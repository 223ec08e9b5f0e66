package io.cuvette.sim.internal.graph;

import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** What a graph was instantiated to. Guarded by the driver's lock. */
public final class SimExecutable {
  public static final long FREES_ON_LAUNCH = 1;
  static final long NODE_PRIORITIES = 8;

  public final long flags;
  final ExecGraph graph;
  private final SimGraph source;
  private final Map<SimNode, ExecNode> nodes = new HashMap<>();
  private final Lanes lanes = new Lanes();
  private List<SimCondition> conditions = new ArrayList<>();
  private Holding holding = new Holding();
  private @Nullable SimOp last;
  private int running;
  private boolean destroyed;

  /** An executable of what a graph has now; the graph was checked. */
  SimExecutable(SimGraph source, long flags) {
    this.source = source;
    this.flags = flags;
    this.graph = ExecGraph.of(source);
    graph.forEach(node -> nodes.put(node.source, node));
    source.instantiated();
    adopt(source);
  }

  /** Retains what a graph, and those inside it, retain, in the place of what was before. */
  private void adopt(SimGraph from) {
    Holding before = holding;
    List<SimCondition> conditionsBefore = conditions;
    holding = new Holding();
    holding.add(from);
    conditions = from.allConditions();
    conditions.forEach(SimCondition::retain);
    conditionsBefore.forEach(SimCondition::release);
    before.release();
  }

  /** The node that was instantiated from a node. */
  ExecNode node(SimNode node) {
    ExecNode found = nodes.get(node);
    if (found == null) {
      throw SimRefusal.invalidValue(
          "node: 0x%x of graph 0x%x (expected: of the graph that was instantiated)"
              .formatted(node.handle, node.graph.handle));
    }
    return found;
  }

  public boolean isEnabled(SimNode node) {
    return node(node).isEnabled();
  }

  /** Says whether a node takes part in launches from now on. */
  public void enable(SimNode node, boolean enable) {
    node(node).enable(enable);
  }

  /** Retains what a graph retains too, since a part of it takes part in launches from now on. */
  void retainAlso(SimGraph from) {
    holding.add(from);
  }

  /** Retains what a graph retains, which all of it has become. */
  void updatedTo(SimGraph from) {
    adopt(from);
  }

  /**
   * Queues a launch behind the launch before.
   *
   * @throws SimRefusal before anything is queued, if a device has failed or its memory is not free
   */
  public void launch(SimStream stream, LaunchQueue queue) {
    LaunchMemory memory = LaunchMemory.of(this, stream.device);
    devices().forEach(SimDevice::checkWorks);
    memory.reserve();
    awaitLast(stream, queue);
    memory.take(stream, queue);
    Replay replay = new Replay(queue, graph);
    List<SimCondition> read = conditions;
    SimOp start =
        queue.queue(
            SimOp.work(stream, () -> read.forEach(SimCondition::start), 0, queue.hostNanos()));
    Lanes own = replay.comesInParts() ? new Lanes() : lanes;
    own.reset();
    SimOp all = replay.run(graph, own, start);
    if (all != start) {
      queue.queue(SimOp.waiting(stream, all, queue.hostNanos()));
    }
    SimOp end = SimOp.point(stream, queue.hostNanos());
    Holding held = holding;
    held.retain();
    running++;
    end.whenDone(() -> {
      held.release();
      running--;
      endIfUnused();
    });
    last = queue.queue(end);
  }

  /** Queues what an upload waits for, and reserves the memory of launches. */
  public void upload(SimStream stream, LaunchQueue queue) {
    devices().forEach(SimDevice::checkWorks);
    LaunchMemory.reserve(this);
    awaitLast(stream, queue);
    queue.queue(SimOp.point(stream, queue.hostNanos()));
  }

  private void awaitLast(SimStream stream, LaunchQueue queue) {
    if (last != null && last.stream != stream) {
      queue.queue(SimOp.waiting(stream, last, queue.hostNanos()));
    }
  }

  private Set<SimDevice> devices() {
    Set<SimDevice> devices = new LinkedHashSet<>();
    graph.forEach(node -> devices.add(node.work().device()));
    return devices;
  }

  /** A launch that runs completes, and keeps what it needs. */
  public void destroy() {
    destroyed = true;
    holding.release();
    endIfUnused();
  }

  private void endIfUnused() {
    if (destroyed && running == 0) {
      conditions.forEach(SimCondition::release);
      conditions = List.of();
      source.executableEnded();
    }
  }

  /** The user objects of an executable, which launches keep after an update or its end. */
  private static final class Holding {
    private final List<SimUserObject> objects = new ArrayList<>();
    private int references = 1;

    void add(SimGraph from) {
      List<SimUserObject> all = from.allObjects();
      all.forEach(SimUserObject::retain);
      objects.addAll(all);
    }

    void retain() {
      references++;
    }

    void release() {
      if (--references == 0) {
        objects.forEach(SimUserObject::release);
        objects.clear();
      }
    }
  }
}

package io.cuvette.instrument.internal.memory;

import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.LaunchWatcher;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.order.Beginnings;
import io.cuvette.instrument.internal.order.EventMark;
import io.cuvette.instrument.internal.order.HostFunction;
import io.cuvette.instrument.internal.order.KnownStreams;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import io.cuvette.instrument.internal.report.Findings;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The memory that the nodes of executables use. Each launch uses the blocks that were there when
 * the node got its parameters, and no other ones that have their addresses by now. Not thread-safe.
 */
public final class KnownGraphs {
  private final KnownMemory memory;
  private final KnownStreams streams;
  private final Map<Long, Executable> executables = new HashMap<>();

  /** What the graphs retain. */
  public final KnownObjects objects;

  /**
   * What a node does with memory, as its parameters say. Immutable.
   *
   * @param node the handle of the node
   * @param before the places in the list of nodes of those that it waits for
   * @param ranges what it uses
   * @param allocated the memory that it allocates; null for nodes of other types
   * @param freed the address that it frees; 0 for nodes of other types
   * @param events the event that it records or waits for
   */
  public record NodeUse(
      long node,
      List<Integer> before,
      List<Range> ranges,
      @Nullable Range allocated,
      long freed,
      NodeEvents events) {
    public NodeUse {
      before = List.copyOf(before);
      ranges = List.copyOf(ranges);
    }
  }

  /**
   * The events of a node, and who learns what it touches.
   *
   * @param recorded the handle of the event that it records; 0 for none
   * @param awaited the handle of the event that it waits for; 0 for none
   * @param watcher who learns it, of all launches; null if nobody does
   * @param function the function of the host that it runs; null for none
   */
  public record NodeEvents(
      long recorded,
      long awaited,
      @Nullable LaunchWatcher watcher,
      @Nullable HostFunction function) {
    Stream<Beginnings> beginnings() {
      return Stream.of(function, watcher)
          .mapMulti((any, each) -> {
            if (any instanceof Beginnings made) {
              each.accept(made);
            }
          });
    }

    public static NodeEvents of(GraphNodeParams params) {
      return new NodeEvents(
          params instanceof GraphNodeParams.EventRecord made ? made.event() : 0,
          params instanceof GraphNodeParams.EventWait made ? made.event() : 0,
          params instanceof GraphNodeParams.Kernel made ? made.parameters().watcher() : null,
          params instanceof GraphNodeParams.Host(HostFunction made) ? made : null);
    }
  }

  /** What is used of a block that was there. */
  private record Use(Range range, KnownBlock block, KnownBlock lent) {
    boolean writes() {
      return range.kind() != Kind.READ;
    }
  }

  private static final class Node {
    private final long handle;
    private final List<Integer> before;
    private List<Use> uses;
    private NodeEvents events;
    private boolean enabled = true;

    /** The run of its function in the last launch. */
    private long run;

    Node(NodeUse node, List<Use> uses) {
      this.handle = node.node;
      this.before = node.before;
      this.uses = uses;
      this.events = node.events;
    }

    void become(List<Use> newUses, NodeEvents newEvents) {
      uses = newUses;
      events = newEvents;
      run = 0; // of another function
    }
  }

  private static final class Executable {
    private List<Node> nodes = List.of();
    private List<KnownObjects.Retained> objects = List.of();

    /** What launches leave allocated. */
    private List<Range> outputs = List.of();

    /** What launches free that others allocated. */
    private List<Long> inputs = List.of();

    /** The launch before, which the next one waits for. */
    private final EventMark last = new EventMark(false);

    /** What the nodes that take part write. */
    RangeMap<Boolean> written() {
      RangeMap<Boolean> written = new RangeMap<>();
      nodes.stream()
          .filter(node -> node.enabled)
          .flatMap(node -> node.uses.stream())
          .filter(Use::writes)
          .forEach(to -> written.set(to.range.address(), to.range.bytes(), true));
      return written;
    }

    /** What a node copies to the host, and none of the graph writes. */
    static Stream<Range> toHost(Node node, RangeMap<Boolean> written) {
      return node.uses.stream()
          .filter(
              _ -> node.uses.stream().allMatch(to -> !to.writes() || to.block.contents() == null))
          .filter(from -> !from.writes())
          .map(Use::range)
          .filter(from -> written.find(from.address(), from.bytes(), _ -> true) == null);
    }

    boolean hasFunctions() {
      return nodes.stream().anyMatch(node -> node.events.function != null);
    }

    @Nullable Node find(long handle) {
      return nodes.stream().filter(node -> node.handle == handle).findFirst().orElse(null);
    }
  }

  public KnownGraphs(KnownMemory memory, KnownStreams streams) {
    this.memory = memory;
    this.streams = streams;
    this.objects = new KnownObjects(streams);
  }

  /** Notes an executable of a graph. */
  public void instantiated(long executable, long graph, List<NodeUse> nodes) {
    Executable made = new Executable();
    made.objects = objects.of(graph);
    made.nodes = nodes.stream().map(each -> new Node(each, uses(each.ranges))).toList();
    note(made, nodes);
    executables.put(executable, made);
  }

  private static void note(Executable executable, List<NodeUse> nodes) {
    List<Range> outputs = new ArrayList<>();
    List<Long> inputs = new ArrayList<>();
    for (NodeUse each : nodes) {
      if (each.allocated != null) {
        outputs.add(each.allocated);
      }
    }
    for (NodeUse each : nodes) {
      if (each.freed != 0 && !outputs.removeIf(range -> range.address() == each.freed)) {
        inputs.add(each.freed);
      }
    }
    executable.outputs = outputs;
    executable.inputs = inputs;
  }

  private List<Use> uses(List<Range> ranges) {
    List<Use> uses = new ArrayList<>();
    for (Range range : ranges) {
      KnownBlock block = memory.outsideOfGraphs(range.address());
      if (block != null) {
        uses.add(new Use(range, block, block.lastAround(range.address())));
      }
    }
    return List.copyOf(uses);
  }

  /** Notes that the nodes of an executable do what those of a graph with the same topology do. */
  public void updated(long executable, long graph, List<NodeUse> nodes) {
    Executable known = executables.get(executable);
    if (known != null) {
      known.objects = objects.of(graph);
    }
    if (known != null && known.nodes.size() == nodes.size()) {
      for (int i = 0; i < nodes.size(); i++) {
        known.nodes.get(i).become(uses(nodes.get(i).ranges), nodes.get(i).events);
      }
    }
  }

  /** Notes that a node of an executable does something else. */
  public void changed(long executable, long handle, List<Range> ranges, NodeEvents events) {
    Node node = find(executable, handle);
    if (node != null) {
      node.become(uses(ranges), events);
    }
  }

  /** Notes whether a node takes part in launches. */
  public void enabled(long executable, long handle, boolean enabled) {
    Node node = find(executable, handle);
    if (node != null) {
      node.enabled = enabled;
    }
  }

  private @Nullable Node find(long executable, long handle) {
    Executable known = executables.get(executable);
    return known == null ? null : known.find(handle);
  }

  public void destroyed(long executable) {
    executables.remove(executable);
  }

  /** Whether a launch may use what its nodes use, ahead of a stream that learns what it awaits. */
  public void check(long executable, Lane lane, CallTrace here, Findings findings) {
    Executable known = executables.get(executable);
    if (known == null) {
      return;
    }
    streams.await(lane, known.last);
    for (Node node : known.nodes) {
      if (node.events.awaited != 0) { // as if all nodes did: never too many findings
        streams.await(lane, streams.events.find(node.events.awaited));
      }
    }
    // Behind what the host lets go on; nodes are listed before those behind.
    boolean isLate = streams.order.isClosedBeforeNext(lane);
    RangeMap<Boolean> written = known.written();
    for (Node node : known.nodes) {
      if (node.enabled) {
        boolean isLater = isLate || node.events.watcher != null;
        node.uses.forEach(use -> check(use, isLater, lane, here, findings));
        Executable.toHost(node, written)
            .forEach(from -> memory.contents.check(from, here, findings));
      }
      isLate |= node.events.function != null;
    }
  }

  private void check(Use use, boolean isLater, Lane lane, CallTrace here, Findings findings) {
    boolean isLive = memory.isLive(use.block);
    KnownBlock lent = isLive ? use.lent : use.block;
    if (isLive && !(lent.freed() != null && lent.isLeftByGraphs)) {
      if (!use.block.holds(use.range)) {
        KnownMemory.outOfBounds(use.block, use.range, here, findings);
      } else if (!isLater) { // else races are looked at then
        memory.checkRace(use.range, lane, here, findings);
      }
    } else if (lent.freed() != null) {
      findings.add(
          Misuse.USE_AFTER_FREE,
          here,
          "%s in a graph: freed %s".formatted(use.range, lent),
          lent.freed(),
          lent.allocated);
    }
  }

  /** Notes what nodes do. A function tells of those before it alone, so each is a part then. */
  private void use(Executable known, Lane lane, CallTrace here) {
    boolean isOne = !known.hasFunctions();
    List<Lane> parts = new ArrayList<>();
    for (Node node : known.nodes) {
      Lane part = isOne ? lane : streams.order.part(lane);
      if (!isOne) {
        node.before.forEach(place -> streams.order.await(part, parts.get(place)));
        parts.add(part);
      }
      if (node.enabled) {
        if (node.events.watcher instanceof TouchedBytes told) {
          told.expect();
        }
        note(node, part, here);
      }
      HostFunction function = node.events.function;
      if (function != null) {
        node.run = function.expect(node.run, part.known());
        streams.order.gate(part, function::isPending);
      }
    }
    parts.forEach(part -> streams.order.await(lane, part));
    parts.forEach(streams.order::destroy);
  }

  /** What learns that launches run: the functions of the host, and who watches kernels. */
  public List<Beginnings> beginnings(long executable) {
    Executable known = executables.get(executable);
    List<Node> nodes = known == null ? List.of() : known.nodes;
    return nodes.stream().flatMap(node -> node.events.beginnings()).toList();
  }

  /** Notes a launch that the driver took. */
  public void launched(long executable, Lane lane, CallTrace here) {
    Executable known = executables.get(executable);
    if (known == null) {
      return;
    }
    use(known, lane, here);
    memory.hostReads.unseen(lane, here); // not done once a function has begun
    known.inputs.forEach(address -> {
      KnownBlock _ = memory.free(address, here);
    });
    known.outputs.forEach(each -> memory.allocatedInGraph(each.address(), each.bytes(), here));
    streams.record(known.last, lane, lane.known().copy());
    for (Node node : known.nodes) {
      EventMark event = streams.events.find(node.events.recorded);
      if (event != null) { // as if behind all nodes, likewise
        streams.record(event, lane, lane.known().copy());
      }
    }
    objects.launched(known.objects, lane);
  }

  private void note(Node node, Lane lane, CallTrace here) {
    List<Range> used =
        node.uses.stream().filter(use -> memory.isLive(use.block)).map(Use::range).toList();
    memory.use(lane, used, here, node.events.watcher);
    for (Range range : used) {
      if (range.kind() == Kind.WRITE || range.kind() == Kind.USE) {
        memory.contents.written(range);
      }
    }
  }
}

package io.cuvette.internal.node;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphEdge;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.fence.Retained;
import io.cuvette.internal.graph.GraphArena;
import io.cuvette.internal.graph.OpenGraph;
import io.cuvette.internal.session.Device;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.LongFunction;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The nodes of a graph, or of a body that a conditional node of it has, which ends with the node.
 * Thread-safe.
 */
public final class GraphNodes {
  /** What CUDA runs in a body. */
  private static final Set<GraphNodeType> IN_BODIES =
      EnumSet.of(
          GraphNodeType.KERNEL,
          GraphNodeType.MEMCPY,
          GraphNodeType.MEMSET,
          GraphNodeType.EMPTY,
          GraphNodeType.GRAPH,
          GraphNodeType.CONDITIONAL);

  final OpenGraph graph;
  private final @Nullable Body body;

  /** The nodes that were given out and are there, by handle. */
  private final Map<Long, NodeId> nodes = new ConcurrentHashMap<>();

  /** What conditional nodes run that were added here. */
  private final Map<NodeId, List<GraphNodes>> bodies = new ConcurrentHashMap<>();

  /** What nodes use that changed; for who is alone with the graph. */
  private final Map<NodeId, Capture> kept = new ConcurrentHashMap<>();

  /** How many nodes were added here, also to bodies. */
  private final AtomicLong added;

  /** An edge between nodes of the graph. */
  public record Edge(NodeId from, NodeId to) {}

  /** A graph within another: of which node there, and its handle. */
  private record Body(GraphNodes of, NodeId node, long handle) {}

  public GraphNodes(OpenGraph graph) {
    this.graph = graph;
    this.body = null;
    this.added = new AtomicLong();
  }

  private GraphNodes(GraphNodes of, NodeId node, long handle) {
    this.graph = of.graph;
    this.body = new Body(of, node, handle);
    this.added = of.added;
  }

  private GraphCalls driver() {
    return graph.device().context().graphs();
  }

  private <T> T call(LongFunction<T> call) {
    return body == null
        ? graph.call(call)
        : body.of.call(_ -> {
          body.of.checkNode(body.node);
          return call.apply(body.handle);
        });
  }

  public boolean isBody() {
    return body != null;
  }

  /** What the nodes of a conditional node are, in the order of its bodies. */
  public List<GraphNodes> bodies(NodeId node) {
    return of(
        node,
        driver -> {
          List<GraphNodes> known = bodies.get(node);
          if (known == null) {
            throw new IllegalStateException(
                "%s is of type %s (expected: a conditional node that was added here)"
                    .formatted(node, driver.graphNodeGetType(node.handle())));
          }
          return known;
        });
  }

  /** What kernels set and a conditional node of these reads (cuGraphConditionalHandleCreate). */
  public long condition(int defaultValue, boolean assignsDefault) {
    return call(handle ->
        driver()
            .graphConditionalHandleCreate(
                graph.device().id(), handle, defaultValue, assignsDefault));
  }

  private void checkAllowed(GraphNodeType type) {
    if (body != null && !IN_BODIES.contains(type)) {
      throw new IllegalArgumentException(
          "node of type %s in the body of a conditional node (expected: one of %s)"
              .formatted(type, IN_BODIES));
    }
  }

  /** Refuses another graph as a node of a body, if CUDA runs its nodes in none. */
  void checkNodes(OpenGraph child) {
    if (body != null) {
      List<GraphNodeType> types =
          child.call(handle ->
              Arrays.stream(driver().graphGetNodes(handle))
                  .mapToObj(driver()::graphNodeGetType)
                  .toList());
      types.forEach(this::checkAllowed);
    }
  }

  /** The nodes that there are now (cuGraphGetNodes). */
  public List<NodeId> nodes() {
    return call(handle -> {
      List<NodeId> now =
          Arrays.stream(driver().graphGetNodes(handle)).mapToObj(this::known).toList();
      nodes.values().retainAll(now);
      return now;
    });
  }

  /** A node that the driver has. */
  private NodeId known(long node) {
    return nodes.computeIfAbsent(node, handle -> new NodeId(handle, 0));
  }

  /** How many nodes were added here: those of a larger number come later. */
  public long added() {
    return added.get();
  }

  /** The edges that there are now (cuGraphGetEdges). */
  public List<Edge> edges() {
    return call(handle ->
        driver().graphGetEdges(handle).stream()
            .map(edge -> new Edge(known(edge.from()), known(edge.to())))
            .toList());
  }

  /** Adds an edge (cuGraphAddDependencies); false if it was there. */
  public boolean addEdge(NodeId from, NodeId to) {
    return call(handle -> {
      checkNode(from);
      checkNode(to);
      GraphEdge edge = new GraphEdge(from.handle(), to.handle());
      if (driver().graphGetEdges(handle).contains(edge)) {
        return false;
      }
      if (from.equals(to) || isBehind(handle, to.handle(), from.handle())) {
        throw new IllegalArgumentException(
            "%s after %s: a cycle (expected: nodes that wait for each other in one direction)"
                .formatted(to, from));
      }
      driver().graphAddDependencies(handle, List.of(edge));
      return true;
    });
  }

  /** Whether a node runs after another one. */
  private boolean isBehind(long handle, long first, long node) {
    Map<Long, List<Long>> next =
        driver().graphGetEdges(handle).stream()
            .collect(
                Collectors.groupingBy(
                    GraphEdge::from, Collectors.mapping(GraphEdge::to, Collectors.toList())));
    Set<Long> seen = new HashSet<>();
    Deque<Long> left = new ArrayDeque<>(List.of(first));
    while (!left.isEmpty()) {
      long now = left.pop();
      if (now == node) {
        return true;
      }
      if (seen.add(now)) {
        left.addAll(next.getOrDefault(now, List.of()));
      }
    }
    return false;
  }

  /** Removes an edge (cuGraphRemoveDependencies); false if there was none. */
  public boolean removeEdge(NodeId from, NodeId to) {
    return call(handle -> {
      GraphEdge edge = new GraphEdge(from.handle(), to.handle());
      boolean isThere = has(from) && has(to) && driver().graphGetEdges(handle).contains(edge);
      if (isThere) {
        driver().graphRemoveDependencies(handle, List.of(edge));
      }
      return isThere;
    });
  }

  /** Asks about a node, or does something with it, which is not removed meanwhile. */
  public <T> T of(NodeId node, Function<GraphCalls, T> call) {
    return call(_ -> {
      checkNode(node);
      return call.apply(driver());
    });
  }

  /** Removes a node, and its edges (cuGraphDestroyNode). */
  public void remove(NodeId node) {
    boolean _ =
        of(
            node,
            driver -> {
              driver.graphDestroyNode(node.handle());
              forget(node);
              return nodes.remove(node.handle(), node);
            });
  }

  /** Lets go of what a node changed to, and those of its bodies: executables keep it themselves. */
  private void forget(NodeId node) {
    Capture used = kept.remove(node);
    if (used != null && graph.retained().drop(used)) {
      used.letGo();
    }
    List<GraphNodes> within = bodies.remove(node);
    if (within != null) {
      within.forEach(body -> List.copyOf(body.nodes.values()).forEach(body::forget));
    }
  }

  private boolean has(NodeId node) {
    return node.equals(nodes.get(node.handle()));
  }

  private void checkNode(NodeId node) {
    if (!has(node)) {
      throw new IllegalStateException("%s was removed from %s".formatted(node, this));
    }
  }

  /** A new node behind others. */
  public NodeTarget after(List<NodeId> dependencies) {
    return new Change() {
      @Override
      @Nullable Map<NodeId, Capture> kept() {
        return null;
      }

      @Override
      public NodeId set(GraphNodeParams params) {
        return call(handle -> {
          dependencies.forEach(GraphNodes.this::checkNode);
          checkAllowed(params.type());
          long[] behind = dependencies.stream().mapToLong(NodeId::handle).toArray();
          return added(driver().graphAddNode(graph.device().id(), handle, behind, params));
        });
      }
    };
  }

  private NodeId added(AddedNode made) {
    NodeId node = new NodeId(made.node(), added.incrementAndGet());
    nodes.put(made.node(), node);
    if (!made.bodies().isEmpty()) {
      bodies.put(
          node, made.bodies().stream().map(body -> new GraphNodes(this, node, body)).toList());
    }
    return node;
  }

  /** A node that does something else from now on, in what is instantiated later. */
  public NodeTarget change(NodeId node) {
    return new Change() {
      @Override
      public NodeId set(GraphNodeParams params) {
        return of(
            node,
            driver -> {
              checkType(driver, node, params);
              driver.graphNodeSetParams(graph.device().id(), node.handle(), params);
              return node;
            });
      }
    };
  }

  static void checkType(GraphCalls driver, NodeId node, GraphNodeParams params) {
    GraphNodeType type = driver.graphNodeGetType(node.handle());
    if (type != params.type()) {
      throw new IllegalArgumentException(
          "%s is of type %s and cannot become %s (expected: work of the same type)"
              .formatted(node, type, params.type()));
    }
  }

  /** Where the nodes of a graph change. */
  private abstract class Change extends NodeTarget {
    @Override
    Device device() {
      return graph.device();
    }

    @Override
    Retained retained() {
      return graph.retained();
    }

    @Override
    @Nullable Map<NodeId, Capture> kept() {
      return kept;
    }

    @Override
    void letGo(Capture before) {
      before.letGo(); // what was instantiated keeps it itself
    }

    @Override
    <T> T alone(Supplier<T> step) {
      return graph.alone(step);
    }

    @Override
    void checkChild(OpenGraph child) {
      checkNodes(child);
    }

    @Override
    @Nullable GraphArena memory() {
      return graph.memory();
    }
  }

  @Override
  public String toString() {
    return body == null
        ? graph.toString()
        : "body 0x%x of %s of %s".formatted(body.handle, body.node, body.of);
  }
}

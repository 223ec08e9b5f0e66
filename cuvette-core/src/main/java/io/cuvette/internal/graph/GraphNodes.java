package io.cuvette.internal.graph;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphEdge;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.internal.fence.Retained;
import io.cuvette.internal.session.Device;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
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

  /** The handles of nodes that were given out, and not removed here. */
  private final Set<Long> nodes = ConcurrentHashMap.newKeySet();

  /** What conditional nodes run that were added here. */
  private final Map<Long, List<GraphNodes>> bodies = new ConcurrentHashMap<>();

  /** A graph within another: of which node there, and its handle. */
  private record Body(GraphNodes of, long node, long handle) {}

  GraphNodes(OpenGraph graph) {
    this.graph = graph;
    this.body = null;
  }

  private GraphNodes(GraphNodes of, long node, long handle) {
    this.graph = of.graph;
    this.body = new Body(of, node, handle);
  }

  private GraphCalls driver() {
    return graph.device.context().graphs();
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
  public List<GraphNodes> bodies(long node) {
    return of(
        node,
        driver -> {
          List<GraphNodes> known = bodies.get(node);
          if (known == null) {
            throw new IllegalStateException(
                "node 0x%x is of type %s (expected: a conditional node that was added here)"
                    .formatted(node, driver.graphNodeGetType(node)));
          }
          return known;
        });
  }

  /** What kernels set and a conditional node of these reads (cuGraphConditionalHandleCreate). */
  public long condition(int defaultValue, boolean assignsDefault) {
    return call(handle ->
        driver()
            .graphConditionalHandleCreate(graph.device.id(), handle, defaultValue, assignsDefault));
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
      for (long node : child.nodes.nodes()) {
        checkAllowed(child.nodes.of(node, driver -> driver.graphNodeGetType(node)));
      }
    }
  }

  /** The nodes that there are now (cuGraphGetNodes). */
  public long[] nodes() {
    return call(handle -> {
      long[] now = driver().graphGetNodes(handle);
      for (long node : now) {
        nodes.add(node);
      }
      return now;
    });
  }

  /** The edges that there are now (cuGraphGetEdges). */
  public List<GraphEdge> edges() {
    return call(handle -> {
      List<GraphEdge> now = driver().graphGetEdges(handle);
      for (GraphEdge edge : now) {
        nodes.add(edge.from());
        nodes.add(edge.to());
      }
      return now;
    });
  }

  /** Adds an edge (cuGraphAddDependencies); false if it was there. */
  public boolean addEdge(long from, long to) {
    return call(handle -> {
      checkNode(from);
      checkNode(to);
      GraphEdge edge = new GraphEdge(from, to);
      if (driver().graphGetEdges(handle).contains(edge)) {
        return false;
      }
      if (from == to || isBehind(handle, to, from)) {
        throw new IllegalArgumentException(
            "node 0x%x after 0x%x: a cycle (expected: nodes that wait for each other in one direction)"
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
  public boolean removeEdge(long from, long to) {
    return call(handle -> {
      GraphEdge edge = new GraphEdge(from, to);
      boolean isThere = driver().graphGetEdges(handle).contains(edge);
      if (isThere) {
        driver().graphRemoveDependencies(handle, List.of(edge));
      }
      return isThere;
    });
  }

  /** Asks about a node, or does something with it, which is not removed meanwhile. */
  public <T> T of(long node, Function<GraphCalls, T> call) {
    return call(_ -> {
      checkNode(node);
      return call.apply(driver());
    });
  }

  /** Removes a node, and its edges (cuGraphDestroyNode). */
  public void remove(long node) {
    boolean _ =
        of(
            node,
            driver -> {
              driver.graphDestroyNode(node);
              bodies.remove(node);
              return nodes.remove(node);
            });
  }

  private void checkNode(long node) {
    if (!nodes.contains(node)) {
      throw new IllegalStateException("node 0x%x was removed from %s".formatted(node, this));
    }
  }

  /** A new node behind others. */
  public NodeTarget after(long... dependencies) {
    return new Change() {
      @Override
      public AddedNode set(GraphNodeParams params) {
        return call(handle -> {
          for (long node : dependencies) {
            checkNode(node);
          }
          checkAllowed(params.type());
          AddedNode made = driver().graphAddNode(graph.device.id(), handle, dependencies, params);
          nodes.add(made.node());
          if (!made.bodies().isEmpty()) {
            bodies.put(
                made.node(),
                made.bodies().stream()
                    .map(body -> new GraphNodes(GraphNodes.this, made.node(), body))
                    .toList());
          }
          return made;
        });
      }
    };
  }

  /** A node that does something else from now on, in what is instantiated later. */
  public NodeTarget change(long node) {
    return new Change() {
      @Override
      public AddedNode set(GraphNodeParams params) {
        return of(
            node,
            driver -> {
              checkType(driver, node, params);
              driver.graphNodeSetParams(graph.device.id(), node, params);
              return AddedNode.plain(node);
            });
      }
    };
  }

  static void checkType(GraphCalls driver, long node, GraphNodeParams params) {
    GraphNodeType type = driver.graphNodeGetType(node);
    if (type != params.type()) {
      throw new IllegalArgumentException(
          "node 0x%x is of type %s and cannot become %s (expected: work of the same type)"
              .formatted(node, type, params.type()));
    }
  }

  /** Where the nodes of a graph change. */
  private abstract class Change extends NodeTarget {
    @Override
    Device device() {
      return graph.device;
    }

    @Override
    Retained retained() {
      return graph.retained;
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
      return graph.memory;
    }
  }

  @Override
  public String toString() {
    return body == null
        ? graph.toString()
        : "body 0x%x of node 0x%x of %s".formatted(body.handle, body.node, body.of);
  }
}

package io.cuvette.internal.graph;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphEdge;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * A graph as the engine knows it. What was instantiated from it goes on after its end. Thread-safe.
 */
public final class OpenGraph extends GraphObject {
  private static final AtomicLong NUMBERS = new AtomicLong();

  final Retained retained;

  /** Tells graphs apart, also when they are gone. */
  final long number = NUMBERS.incrementAndGet();

  /** The handles of nodes that were given out, and not removed here. */
  private final Set<Long> nodes = ConcurrentHashMap.newKeySet();

  private OpenGraph(Device device, @Nullable GraphArena memory, Retained retained, long handle) {
    super(device, memory, handle, new Handle(device.session(), handle, retained));
    this.retained = retained;
  }

  /** The graph of the driver. */
  private static final class Handle extends Ended {
    private final Retained retained;

    Handle(Session session, long value, Retained retained) {
      super(session, value);
      this.retained = retained;
    }

    @Override
    void destroy() {
      session.driver().graphs().graphDestroy(value);
    }

    @Override
    void over(boolean withSession) {
      retained.release();
    }

    @Override
    public String toString() {
      return "graph 0x" + Long.toHexString(value);
    }
  }

  /** Makes a graph of the driver, which ends with the result; that takes over what it retains. */
  static OpenGraph make(
      Device device, @Nullable GraphArena memory, Retained retained, LongSupplier call) {
    return device
        .session()
        .gate()
        .make(() -> registered(device, memory, retained, call.getAsLong()));
  }

  /** The driver gets the graph back if there is no Java heap for it. */
  private static OpenGraph registered(
      Device device, @Nullable GraphArena memory, Retained retained, long handle) {
    try {
      OpenGraph graph = new OpenGraph(device, memory, retained, handle);
      graph.listed();
      return graph;
    } catch (OutOfMemoryError e) {
      Failures.closeAfter(e, () -> device.session().driver().graphs().graphDestroy(handle));
      throw e;
    }
  }

  /** A graph without nodes (cuGraphCreate). */
  public static OpenGraph empty(Device device) {
    device.session().checkOpen();
    device.session().leaks().drain();
    return make(device, null, new Retained(), () -> device.context().graphs().graphCreate());
  }

  private GraphCalls driver() {
    return device.context().graphs();
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
          AddedNode made = driver().graphAddNode(device.id(), handle, dependencies, params);
          nodes.add(made.node());
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
              driver.graphNodeSetParams(device.id(), node, params);
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

  /** A change of this graph. */
  private abstract class Change extends NodeTarget {
    @Override
    Device device() {
      return device;
    }

    @Override
    Retained retained() {
      return retained;
    }

    @Override
    <T> T alone(Supplier<T> step) {
      return OpenGraph.this.alone(step);
    }

    @Override
    @Nullable GraphArena memory() {
      return memory;
    }
  }

  /** A graph with copies of all nodes (cuGraphClone). */
  public OpenGraph copy() {
    device.session().leaks().drain();
    Retained copy = new Retained();
    try {
      return make(device, memory, copy, () -> call(source -> copied(source, copy)));
    } catch (RuntimeException | Error e) {
      copy.release();
      throw e;
    }
  }

  private long copied(long source, Retained copy) {
    copy.addAll(retained);
    return device.context().graphs().graphClone(source);
  }
}

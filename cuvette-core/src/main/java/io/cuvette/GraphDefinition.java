package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.internal.base.CudaVersion;
import io.cuvette.internal.graph.OpenGraph;
import io.cuvette.internal.node.GraphNodes;
import io.cuvette.internal.node.NodeId;
import java.util.AbstractSet;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The nodes of a graph, and what they wait for: of one that is built node by node, or of one that a
 * stream has captured. Thread-safe.
 *
 * {@snippet :
 * try (GraphDefinition definition = new GraphDefinition(device)) {
 *   GraphNode filled = definition.root().fillInts(a, 1);
 *   GraphNode copied = definition.after(filled).copy(b, a);
 *   definition.after(copied).launch(kernel, config, b, 1024);
 *   CudaGraphExec executable = definition.graph().instantiate();
 * }
 * }
 */
public final class GraphDefinition implements AutoCloseable {
  private static final int CONDITIONS_SINCE = 12_030;
  private static final int SEVERAL_BODIES_SINCE = 12_080;

  private final CudaGraph graph;
  private final GraphNodes core;

  /**
   * A graph without nodes (cuGraphCreate).
   *
   * @param device the device that it is for
   * @throws IllegalStateException if the Cuda is closed
   * @throws CudaException if the driver reports an error
   */
  public GraphDefinition(CudaDevice device) {
    this(new CudaGraph(OpenGraph.empty(Objects.requireNonNull(device, "device").core())));
  }

  private GraphDefinition(CudaGraph graph) {
    this(graph, graph.nodes());
  }

  private GraphDefinition(CudaGraph graph, GraphNodes core) {
    this.graph = graph;
    this.core = core;
  }

  /** The same for a body of one of the nodes. */
  GraphDefinition body(GraphNodes nodes) {
    return new GraphDefinition(graph, nodes);
  }

  GraphNodes core() {
    return core;
  }

  /**
   * {@return the nodes of a graph, such as a captured one}
   *
   * @param graph the graph, which {@link #close} closes
   */
  public static GraphDefinition of(CudaGraph graph) {
    return new GraphDefinition(Objects.requireNonNull(graph, "graph"));
  }

  /** {@return the graph, to be instantiated or copied; of a body, the graph that it is within} */
  public CudaGraph graph() {
    return graph;
  }

  /** {@return whether this is a body of a conditional node} */
  public boolean isBody() {
    return core.isBody();
  }

  /**
   * Makes a condition for a node of this graph or body, which keeps its number from one launch to
   * the next (cuGraphConditionalHandleCreate). Needs CUDA 12.3.
   *
   * @return the condition, whose number is undefined before a kernel sets it
   * @throws UnsupportedOperationException if the driver has no conditional nodes
   * @throws IllegalStateException if the graph is closed
   * @throws CudaException if the driver reports an error
   */
  public GraphCondition createCondition() {
    checkConditions(false);
    return new GraphCondition(this, core.condition(0, false));
  }

  /**
   * Makes a condition for a node of this graph or body (cuGraphConditionalHandleCreate,
   * CU_GRAPH_COND_ASSIGN_DEFAULT). Needs CUDA 12.3.
   *
   * @param defaultValue its number at the start of each launch, without a sign
   * @return the condition
   * @throws UnsupportedOperationException if the driver has no conditional nodes
   * @throws IllegalStateException if the graph is closed
   * @throws CudaException if the driver reports an error
   */
  public GraphCondition createCondition(int defaultValue) {
    checkConditions(false);
    return new GraphCondition(this, core.condition(defaultValue, true));
  }

  /** Checks that the driver has conditional nodes, with or without what came later. */
  void checkConditions(boolean withSeveralBodies) {
    int least = withSeveralBodies ? SEVERAL_BODIES_SINCE : CONDITIONS_SINCE;
    int version = graph.core().device().session().driverVersion();
    if (version < least) {
      String bodies = withSeveralBodies ? " with several bodies" : "";
      throw new UnsupportedOperationException(
          "conditional nodes%s need CUDA %s (the driver has %s)"
              .formatted(bodies, CudaVersion.text(least), CudaVersion.text(version)));
    }
  }

  /** {@return where nodes go that wait for no others} */
  public GraphPlace root() {
    return after();
  }

  /**
   * {@return where nodes go that wait for others}
   *
   * @param nodes nodes of this graph
   * @throws IllegalArgumentException if one is of another graph, or is given twice
   */
  public GraphPlace after(GraphNode... nodes) {
    List<GraphNode> behind = List.of(Objects.requireNonNull(nodes, "nodes"));
    behind.forEach(node -> checkOwn("nodes", node));
    if (behind.stream().distinct().count() < behind.size()) {
      throw new IllegalArgumentException("nodes: %s (expected: each once)".formatted(behind));
    }
    return new GraphPlace(this, behind);
  }

  /**
   * {@return a live view of the nodes: it shows what they are when it is asked (cuGraphGetNodes)}
   * Nodes can be removed from it (cuGraphDestroyNode), and not added.
   *
   * @throws IllegalStateException when it is asked, if the graph is closed
   */
  public Set<GraphNode> nodes() {
    return new Nodes();
  }

  /**
   * {@return a live view of the edges: it shows what they are when it is asked (cuGraphGetEdges)}
   * Edges can be added to it (cuGraphAddDependencies) and removed from it
   * (cuGraphRemoveDependencies). To add one throws {@link IllegalArgumentException} for a node of
   * another graph, and for a cycle.
   *
   * @throws IllegalStateException when it is asked, if the graph is closed
   */
  public Set<GraphDependency> edges() {
    return new Edges();
  }

  /**
   * Closes the graph; what was instantiated from it goes on (cuGraphDestroy). A body ends with the
   * node that has it, and closing it does nothing.
   *
   * @throws CudaException if the driver reports an error
   */
  @Override
  public void close() {
    if (!isBody()) {
      graph.close();
    }
  }

  private void checkOwn(String what, GraphNode node) {
    if (node.definition().core != core) {
      throw new IllegalArgumentException(
          "%s: %s (expected: a node of %s)".formatted(what, node, core));
    }
  }

  private GraphNode node(NodeId id) {
    return new GraphNode(this, id);
  }

  private GraphDependency edge(GraphNodes.Edge edge) {
    return new GraphDependency(node(edge.from()), node(edge.to()));
  }

  /** A set of what the driver lists, anew for each question. */
  private abstract static class Live<E> extends AbstractSet<E> {
    private final Supplier<List<E>> list;

    Live(Supplier<List<E>> list) {
      this.list = list;
    }

    @Override
    public final Iterator<E> iterator() {
      Iterator<E> now = list.get().iterator();
      return new Iterator<>() {
        private @Nullable E last;

        @Override
        public boolean hasNext() {
          return now.hasNext();
        }

        @Override
        public E next() {
          E next = now.next();
          last = next;
          return next;
        }

        @Override
        public void remove() {
          E gone = last;
          if (gone == null) {
            throw new IllegalStateException("remove before next");
          }
          last = null;
          boolean _ = Live.this.remove(gone);
        }
      };
    }

    @Override
    public final int size() {
      return list.get().size();
    }

    @Override
    public final boolean contains(@Nullable Object element) {
      return list.get().contains(element);
    }

    @Override
    public final boolean removeAll(Collection<?> elements) {
      boolean changed = false;
      for (Object element : elements) {
        changed |= remove(element);
      }
      return changed;
    }
  }

  private final class Nodes extends Live<GraphNode> {
    Nodes() {
      super(() -> core.nodes().stream().map(GraphDefinition.this::node).toList());
    }

    @Override
    public boolean remove(@Nullable Object element) {
      if (!(element instanceof GraphNode node) || !contains(node)) {
        return false;
      }
      node.remove();
      return true;
    }
  }

  private final class Edges extends Live<GraphDependency> {
    Edges() {
      super(() -> core.edges().stream().map(GraphDefinition.this::edge).toList());
    }

    @Override
    public boolean add(GraphDependency edge) {
      checkOwn("from", edge.from());
      checkOwn("to", edge.to());
      return core.addEdge(edge.from().id(), edge.to().id());
    }

    @Override
    public boolean remove(@Nullable Object element) {
      return element instanceof GraphDependency(GraphNode from, GraphNode to)
          && from.definition().core == core
          && to.definition().core == core
          && core.removeEdge(from.id(), to.id());
    }
  }

  @Override
  public String toString() {
    return "definition of " + core;
  }
}

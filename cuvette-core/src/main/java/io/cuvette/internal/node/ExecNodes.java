package io.cuvette.internal.node;

import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.fence.Retained;
import io.cuvette.internal.graph.GraphArena;
import io.cuvette.internal.graph.OpenGraphExec;
import io.cuvette.internal.session.Device;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The nodes of a graph as what was instantiated from it runs them. Thread-safe. */
public final class ExecNodes {
  private final OpenGraphExec executable;

  /** How many nodes had been added to the graph. */
  private final long most;

  /** What nodes use that were changed here; for who is alone with the executable. */
  private final Map<NodeId, Capture> kept = new ConcurrentHashMap<>();

  /**
   * Those of an executable.
   *
   * @param most how many nodes had been added to its graph when it was instantiated
   */
  public ExecNodes(OpenGraphExec executable, long most) {
    this.executable = executable;
    this.most = most;
  }

  /** A node that does something else from now on in launches. */
  public NodeTarget change(GraphNodes graph, NodeId node) {
    checkOf(graph, node);
    executable.drain();
    return new NodeTarget() {
      @Override
      Device device() {
        return executable.device();
      }

      @Override
      Retained retained() {
        return executable.retained();
      }

      @Override
      Map<NodeId, Capture> kept() {
        return kept;
      }

      @Override
      void letGo(Capture before) {
        executable.letGoAfterLaunches(before);
      }

      @Override
      <T> T alone(Supplier<T> step) {
        return graph.graph.alone(() -> executable.alone(step)); // as updates do
      }

      @Override
      @Nullable GraphArena memory() {
        return executable.memory();
      }

      @Override
      public NodeId set(GraphNodeParams params) {
        return call(
            graph,
            node,
            (driver, handle) -> {
              GraphNodes.checkType(driver, node, params);
              driver.graphExecNodeSetParams(
                  executable.device().id(), handle, node.handle(), params);
              return node;
            });
      }
    };
  }

  /** Whether a node takes part in launches from now on (cuGraphNodeSetEnabled). */
  public void setEnabled(GraphNodes graph, NodeId node, boolean isEnabled) {
    checkOf(graph, node);
    boolean _ =
        call(
            graph,
            node,
            (driver, handle) -> {
              driver.graphNodeSetEnabled(handle, node.handle(), isEnabled);
              return isEnabled;
            });
  }

  /** Whether a node takes part in launches (cuGraphNodeGetEnabled). */
  public boolean isEnabled(GraphNodes graph, NodeId node) {
    checkOf(graph, node);
    return call(graph, node, (driver, handle) -> driver.graphNodeGetEnabled(handle, node.handle()));
  }

  private <T> T call(GraphNodes graph, NodeId node, BiFunction<GraphCalls, Long, T> call) {
    return graph.of(node, driver -> executable.call(handle -> call.apply(driver, handle)));
  }

  private void checkOf(GraphNodes graph, NodeId node) {
    if (!executable.isOf(graph.graph)) {
      throw new IllegalArgumentException(
          "%s was not instantiated from %s (expected: an executable of the node's graph)"
              .formatted(executable, graph));
    }
    if (node.number() > most) {
      throw new IllegalArgumentException(
          "%s was added after %s was instantiated (expected: a node that it has)"
              .formatted(node, executable));
    }
  }
}

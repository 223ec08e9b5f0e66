package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.internal.graph.OpenGraph;
import io.cuvette.internal.graph.OpenGraphExec;
import io.cuvette.internal.node.ExecNodes;
import io.cuvette.internal.node.GraphNodes;
import java.util.Objects;

/**
 * Work that runs as often as it is launched, at the cost of one call: what a stream has captured
 * (CUgraph). Thread-safe.
 *
 * <p>A graph owns the memory that its work uses. Buffers that take part in the captured work may be
 * closed: their memory is not handed out again before the graph, its copies, what is instantiated
 * from them, and all launches of that are gone.
 */
public final class CudaGraph implements AutoCloseable {
  private final OpenGraph core;
  private final GraphNodes nodes;

  CudaGraph(OpenGraph core) {
    this.core = core;
    this.nodes = new GraphNodes(core);
  }

  /** {@return the number of the device whose stream was captured} */
  public int deviceId() {
    return core.device().id();
  }

  /**
   * {@return what can be launched, with {@link GraphOptions#DEFAULTS}; the caller closes it
   * (cuGraphInstantiateWithParams)}
   *
   * @throws IllegalStateException if the graph is closed
   * @throws CudaException if the driver refuses the graph: which node, and why, is in the message
   */
  public CudaGraphExec instantiate() {
    return instantiate(GraphOptions.DEFAULTS);
  }

  /**
   * {@return what can be launched; the caller closes it (cuGraphInstantiateWithParams)} It does not
   * change with the graph, which may be closed.
   *
   * @param options the options
   * @throws IllegalStateException if the graph is closed
   * @throws CudaException if the driver refuses the graph: which node, and why, is in the message
   */
  public CudaGraphExec instantiate(GraphOptions options) {
    Objects.requireNonNull(options, "options");
    long most = nodes.added(); // first: those that come meanwhile may not be in it
    OpenGraphExec executable = OpenGraphExec.of(core, options);
    return new CudaGraphExec(executable, new ExecNodes(executable, most), options);
  }

  /**
   * {@return a graph with copies of all nodes, and of the same memory; the caller closes it
   * (cuGraphClone)}
   *
   * @throws IllegalStateException if the graph is closed
   * @throws CudaException if the driver reports an error, such as for a graph with allocation nodes
   */
  public CudaGraph copy() {
    return new CudaGraph(core.copy());
  }

  /**
   * {@return a description in the language DOT, which Graphviz draws (cuGraphDebugDotPrint)}
   *
   * @param verbose whether with all that is known of each node, in place of its type alone
   * @throws IllegalStateException if the graph is closed
   * @throws CudaException if the driver reports an error
   */
  public String toDot(boolean verbose) {
    return core.call(handle ->
        core.device().session().driver().graphs().graphDebugDotPrint(handle, verbose ? 1 : 0));
  }

  /**
   * {@return the handle of the driver (CUgraph)} Calls of others about it must not overlap with
   * calls here.
   *
   * @throws IllegalStateException if the graph is closed
   */
  public long handle() {
    return core.handle();
  }

  /** {@return whether the graph is closed} */
  public boolean isClosed() {
    return core.isClosed();
  }

  /**
   * Ends the graph; what was instantiated from it goes on (cuGraphDestroy). Does nothing the second
   * time.
   *
   * @throws CudaException if the driver reports an error
   */
  @Override
  public void close() {
    core.close();
  }

  /** The graph as the engine knows it. */
  OpenGraph core() {
    return core;
  }

  /** Its nodes as the engine knows them. */
  GraphNodes nodes() {
    return nodes;
  }

  @Override
  public String toString() {
    return core.toString();
  }
}

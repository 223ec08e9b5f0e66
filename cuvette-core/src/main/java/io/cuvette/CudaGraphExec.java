package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.internal.graph.OpenGraphExec;
import io.cuvette.internal.node.ExecNodes;
import java.lang.ref.Reference;
import java.util.Objects;

/**
 * A graph that can be launched (CUgraphExec). Launches of the same one never run at the same time:
 * the driver has each wait for the one before. Thread-safe.
 */
public final class CudaGraphExec implements AutoCloseable {
  private final OpenGraphExec core;
  private final ExecNodes nodes;
  private final GraphOptions options;

  CudaGraphExec(OpenGraphExec core, ExecNodes nodes, GraphOptions options) {
    this.core = core;
    this.nodes = nodes;
    this.options = options;
  }

  /** {@return the number of the device in whose streams it is launched} */
  public int deviceId() {
    return core.device().id();
  }

  /** {@return the options with which it was instantiated} */
  public GraphOptions options() {
    return options;
  }

  /**
   * Runs the graph in order of a stream (cuGraphLaunch). Returns before it has run. A graph whose
   * memory is that of a {@link GraphMemory} also waits for the last launch of a graph of the same.
   *
   * @param stream a {@link CudaStream} of the graph's device
   * @throws IllegalArgumentException if the stream is of another device or another Cuda
   * @throws IllegalStateException if this or the stream is closed, or the stream is capturing
   * @throws CudaException if the driver reports an error, such as for allocation nodes of the
   *     launch before whose memory nothing has freed
   */
  public void launch(LaunchStream stream) {
    Objects.requireNonNull(stream, "stream");
    try {
      core.launch(stream.core);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Brings to the device what the next launch needs, in order of a stream, so that it starts sooner
   * (cuGraphUpload). Returns before that is done.
   *
   * @param stream a {@link CudaStream} of the graph's device
   * @throws IllegalArgumentException if the stream is of another device or another Cuda
   * @throws IllegalStateException if this or the stream is closed, or the stream is capturing
   * @throws CudaException if the driver reports an error
   */
  public void upload(LaunchStream stream) {
    Objects.requireNonNull(stream, "stream");
    try {
      core.upload(stream.core);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Takes over what the nodes of another graph do, and its memory, for launches from now on; the
   * graph has the same nodes and edges as the one that this is of (cuGraphExecUpdate). Launches
   * that are queued already run as they were.
   *
   * @param graph the graph, which stays the caller's
   * @throws IllegalArgumentException if the graph is of another device or another Cuda, or of
   *     another {@link GraphMemory}
   * @throws IllegalStateException if this or the graph is closed
   * @throws CudaException GRAPH_EXEC_UPDATE_FAILURE if the driver refuses: which node, and why, is
   *     in the message, and this is as it was
   */
  public void update(CudaGraph graph) {
    Objects.requireNonNull(graph, "graph");
    try {
      core.update(graph.core());
    } finally {
      Reference.reachabilityFence(graph);
      Reference.reachabilityFence(this);
    }
  }

  /**
   * {@return the handle of the driver (CUgraphExec)} Calls of others about it must not overlap with
   * calls here.
   *
   * @throws IllegalStateException if this is closed
   */
  public long handle() {
    return core.handle();
  }

  /** {@return whether this is closed} */
  public boolean isClosed() {
    return core.isClosed();
  }

  /**
   * Ends it; launches so far complete (cuGraphExecDestroy). Does nothing the second time.
   *
   * @throws CudaException if the driver reports an error
   */
  @Override
  public void close() {
    core.close();
  }

  /** The nodes as the engine knows them. */
  ExecNodes nodes() {
    return nodes;
  }

  @Override
  public String toString() {
    return core.toString();
  }
}

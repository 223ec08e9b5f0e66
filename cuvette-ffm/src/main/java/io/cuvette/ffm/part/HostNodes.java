package io.cuvette.ffm.part;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.ffm.call.DriverFunction;
import io.cuvette.ffm.call.Entry;
import java.lang.foreign.MemorySegment;
import java.util.function.LongConsumer;

/**
 * Gives Java functions to nodes of graphs, so that they are there for as long as a launch may run
 * them. Thread-safe.
 */
final class HostNodes extends Part {
  static final DriverFunction RELEASE_USER_OBJECT =
      optional("cuGraphReleaseUserObject(graph=%#x, object=%#x)", 11030, POINTER, POINTER, INT);

  HostNodes(Entry entry) {
    super(entry);
  }

  /**
   * Adds a node that runs a function. First the graph retains what says when the function is not
   * needed any more; it is released again if adding fails.
   *
   * @param adding adds the node, with the number of the function
   */
  void add(int device, long graph, Runnable body, LongConsumer adding) {
    GraphFunctions.sweep();
    HostThreads.used(device);
    Signal gone = Signal.take();
    long object = retained(graph, gone);
    long number = GraphFunctions.add(entry, body, gone);
    try {
      adding.accept(number);
    } catch (RuntimeException e) {
      GraphFunctions.remove(number);
      // A graph that is gone, such as that of a lost capture, has released its objects by itself.
      undo(() -> RELEASE_USER_OBJECT.call(graph, object, 1, enter()), e);
      throw e;
    }
  }

  /** A user object that a graph retains, and nobody else, and that raises a signal. */
  private long retained(long graph, Signal gone) {
    long object;
    try {
      object =
          FfmGraphs.USER_OBJECT_CREATE.call(
              gone.address(), Signal.RAISE, 1, FfmGraphs.NO_DESTRUCTOR_SYNC, enter());
    } catch (RuntimeException e) {
      gone.unused();
      throw e;
    }
    try {
      FfmGraphs.GRAPH_RETAIN_USER_OBJECT.call(
          graph, object, 1, FfmGraphs.MOVE_USER_OBJECT, enter());
      return object;
    } catch (RuntimeException | Error e) {
      undo(() -> FfmGraphs.USER_OBJECT_RELEASE.free(object, 1, entry.enterToFree()), e);
      throw e;
    }
  }

  /**
   * Gives a node another function. The function that it had stays: what was instantiated from the
   * graph may run it. Both are there for as long as the user object that the graph retains since
   * the node was added.
   *
   * @param executable the executable that gets the function; 0 if the graph gets it
   * @param params what the node does now, CUDA_HOST_NODE_PARAMS
   * @param changing changes the node, with the number of the function
   * @throws CudaException if the node's function is not one of Java, as nothing then says how long
   *     the new one is needed
   */
  void change(
      int device,
      long node,
      long executable,
      MemorySegment params,
      Runnable body,
      LongConsumer changing) {
    Signal gone = GraphFunctions.gone(NodeStructures.function(params));
    if (gone == null) {
      throw new CudaException(
          CudaStatus.NOT_SUPPORTED,
          "cuGraphHostNodeSetParams(node=%#x)".formatted(node),
          "the node runs a function of C (expected: a node that was added with one of Java)");
    }
    HostThreads.used(device);
    long number = GraphFunctions.add(entry, body, gone);
    boolean changed = false;
    try {
      changing.accept(number);
      changed = true;
    } finally {
      if (!changed) {
        GraphFunctions.remove(number);
      }
    }
    if (executable != 0) {
      GraphFunctions.keep(number, executable);
    }
  }
}

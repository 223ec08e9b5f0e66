package io.cuvette.internal.node;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.fence.Retained;
import io.cuvette.internal.graph.GraphArena;
import io.cuvette.internal.graph.OpenGraph;
import io.cuvette.internal.session.Device;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Receives what a node does: a new node of a graph, or one that changes. */
public abstract class NodeTarget {
  /** The device that the graph is for. */
  abstract Device device();

  /** What keeps the memory and the events that nodes use. */
  abstract Retained retained();

  /**
   * What nodes use that changed, each by itself; null for new ones, whose memory is kept at once.
   */
  abstract @Nullable Map<NodeId, Capture> kept();

  /** Lets go of what a node did before it changed, which was retained. */
  abstract void letGo(Capture before);

  /** The memory that the graph shares with others; null for memory of its own. */
  abstract @Nullable GraphArena memory();

  /** Does something of several steps with what has the node, which does not end meanwhile. */
  abstract <T> T alone(Supplier<T> step);

  /**
   * Makes or changes the node, by a step that has a capture use or hold what the node does. What
   * one uses that changed is kept until it changes again.
   */
  final NodeId keeping(Function<Capture, NodeId> step) {
    return alone(() -> {
      Map<NodeId, Capture> kept = kept();
      return kept == null ? step.apply(retained().built()) : changed(kept, step);
    });
  }

  private NodeId changed(Map<NodeId, Capture> kept, Function<Capture, NodeId> step) {
    Capture used = Capture.built();
    NodeId node = changed(used, step);
    retained().takeForNow(used);
    Capture before = kept.put(node, used);
    if (before != null && retained().drop(before)) {
      letGo(before);
    }
    return node;
  }

  private NodeId changed(Capture used, Function<Capture, NodeId> step) {
    try {
      return step.apply(used);
    } catch (CudaException e) {
      retained().take(used); // the node may do this now
      throw e;
    } catch (RuntimeException | Error e) {
      used.letGo();
      throw e;
    }
  }

  /** Refuses a graph that cannot be a node there. */
  void checkChild(OpenGraph child) {}

  /** Makes or changes the node. */
  public abstract NodeId set(GraphNodeParams params);
}

package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.instrument.internal.memory.KnownGraphs.NodeEvents;
import io.cuvette.instrument.internal.memory.KnownGraphs.NodeUse;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;

/**
 * Reads from the driver which memory the nodes of graphs use. What host functions do is not
 * followed. Thread-safe.
 */
final class GraphReading {
  private final GraphCalls calls;
  private final SanitizerCore core;

  /** The graphs that conditional nodes run, for which the driver has no call. */
  private final Map<Long, List<Long>> bodies = new ConcurrentHashMap<>();

  GraphReading(GraphCalls calls, SanitizerCore core) {
    this.calls = calls;
    this.core = core;
  }

  /**
   * The nodes of a graph, and of those in its nodes. To be read before the graph is used, so that
   * an error has changed nothing.
   *
   * @throws CudaException if the driver reports an error
   */
  List<NodeUse> nodes(long graph) {
    List<NodeUse> found = new ArrayList<>();
    add(graph, List.of(), found);
    return found;
  }

  /** Notes a node that was added. */
  void added(AddedNode node) {
    if (!node.bodies().isEmpty()) {
      bodies.put(node.node(), node.bodies());
    }
  }

  /** The nodes of all bodies count as if each ran, and come behind the node that they are in. */
  private void add(long graph, List<Integer> around, List<NodeUse> found) {
    Map<Long, List<Integer>> places = new HashMap<>();
    for (long node : calls.graphGetNodes(graph)) {
      GraphNodeParams params = params(node);
      List<Integer> before = new ArrayList<>(around);
      for (long earlier : calls.graphNodeGetDependencies(node)) {
        before.addAll(places.getOrDefault(earlier, List.of()));
      }
      int place = found.size();
      found.add(use(node, before, params));
      if (params instanceof GraphNodeParams.Child child) {
        add(child.graph(), List.of(place), found);
      } else if (params.type() == GraphNodeType.CONDITIONAL) {
        bodies.getOrDefault(node, List.of()).forEach(body -> add(body, List.of(place), found));
      }
      places.put(node, IntStream.range(place, found.size()).boxed().toList());
    }
  }

  /** What a node does; a driver that is too old to tell is no reason to fail. */
  private GraphNodeParams params(long node) {
    try {
      return calls.graphNodeGetParams(node);
    } catch (CudaException e) {
      if (e.status() == CudaStatus.NOT_SUPPORTED
          || e.status() == CudaStatus.CALL_REQUIRES_NEWER_DRIVER) {
        return new GraphNodeParams.Other(calls.graphNodeGetType(node));
      }
      throw e;
    }
  }

  private NodeUse use(long node, List<Integer> before, GraphNodeParams params) {
    List<Range> ranges = core.locked(_ -> ranges(params));
    Range allocated =
        params instanceof GraphNodeParams.Allocation made
            ? range(made.address(), made.bytes(), Kind.WRITE)
            : null;
    long freed = params instanceof GraphNodeParams.Free free ? free.address() : 0;
    return new NodeUse(node, before, ranges, allocated, freed, NodeEvents.of(params));
  }

  /** What a node uses, for callers that hold the lock of the sanitizer. */
  List<Range> ranges(GraphNodeParams params) {
    return switch (params) {
      case GraphNodeParams.Kernel kernel -> SanitizerKernels.arguments(core, kernel.parameters());
      case GraphNodeParams.Copy copy ->
          List.of(
              range(copy.source(), copy.bytes(), Kind.READ),
              range(copy.target(), copy.bytes(), Kind.WRITE));
      case GraphNodeParams.Fill fill ->
          List.of(range(fill.target(), fill.count() * fill.elementBytes(), Kind.WRITE));
      default -> List.of();
    };
  }

  private static Range range(long address, long bytes, Kind kind) {
    return new Range(address, bytes, kind, false);
  }
}

package io.cuvette.sim.internal.calls;

import io.cuvette.driver.GraphNodeParams;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.graph.GraphBlock;
import io.cuvette.sim.internal.graph.NodeTask;
import io.cuvette.sim.internal.graph.NodeWork;
import io.cuvette.sim.internal.graph.SimCondition;
import io.cuvette.sim.internal.graph.SimGraph;
import io.cuvette.sim.internal.machine.SimEvent;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimStream;
import java.util.List;
import java.util.stream.Stream;

/** Makes of parameters what a node does, or refuses them. Guarded by the driver's lock. */
final class NodeMaker {
  private final SimMachine machine;
  private final SimTransferCalls transfers;
  private final SimKernelCalls kernels;
  private final SimEventCalls events;

  NodeMaker(
      SimMachine machine,
      SimTransferCalls transfers,
      SimKernelCalls kernels,
      SimEventCalls events) {
    this.machine = machine;
    this.transfers = transfers;
    this.kernels = kernels;
    this.events = events;
  }

  /** What a new node of a graph does. */
  NodeWork added(SimDevice device, SimGraph graph, GraphNodeParams params) {
    return switch (params) {
      case GraphNodeParams.Child child -> {
        SimGraph embedded = machine.graphs.graphs.get(child.graph());
        if (graph.isWithin(embedded)) {
          throw SimRefusal.invalidValue(
              "graph: 0x%x cannot be inside itself".formatted(child.graph()));
        }
        yield NodeWork.child(device, embedded.copy(graph));
      }
      case GraphNodeParams.Allocation allocation -> allocation(allocation);
      case GraphNodeParams.Free free -> {
        GraphBlock block = GraphBlock.of(machine.start(free.address()));
        if (block == null) {
          throw SimRefusal.invalidValue(
              "address: 0x%x (expected: of an allocation node)".formatted(free.address()));
        }
        block.checkFreeNode(graph);
        yield NodeWork.free(device, block);
      }
      case GraphNodeParams.Conditional conditional -> conditional(device, graph, conditional);
      case GraphNodeParams.Empty _ -> NodeWork.empty(device);
      default -> changed(device, params);
    };
  }

  /** What a node does from now on; those of other types cannot be changed. */
  NodeWork changed(SimDevice device, GraphNodeParams params) {
    SimStream never = new SimStream(device, 0, SimStream.NON_BLOCKING | SimStream.HIDDEN, 0);
    return switch (params) {
      case GraphNodeParams.Kernel kernel -> kernels.node(never, kernel);
      case GraphNodeParams.Copy copy -> transfers.node(never, copy);
      case GraphNodeParams.Fill fill -> transfers.node(never, fill);
      case GraphNodeParams.Host host ->
          NodeWork.of(SimOp.host(never, host.function(), machine.hostNanos()), host);
      case GraphNodeParams.EventRecord(long event) ->
          new NodeWork(device, params, new NodeTask.EventRecord(event(event)));
      case GraphNodeParams.EventWait(long event) ->
          new NodeWork(device, params, new NodeTask.EventWait(event(event)));
      default -> throw SimRefusal.invalidValue("parameters of type %s".formatted(params.type()));
    };
  }

  private SimEvent event(long handle) {
    SimEvent event = events.all.get(handle);
    if (event.isInterprocess()) {
      throw SimRefusal.invalidValue(
          "event: 0x%x is interprocess (expected: one that is not)".formatted(handle));
    }
    return event;
  }

  private NodeWork allocation(GraphNodeParams.Allocation params) {
    SimDevice owner = machine.working(params.device());
    for (int peer : params.peers()) {
      if (!machine.peers.allows(machine.device(peer).index, owner.index)) { // nor itself
        throw SimRefusal.invalidValue(
            "peers: device %d (expected: another one that can reach device %d)"
                .formatted(peer, owner.index));
      }
    }
    GraphBlock block =
        machine.graphMemory(owner).place(params.bytes(), params.peers(), machine.nextId());
    return NodeWork.allocation(owner, block);
  }

  private NodeWork conditional(
      SimDevice device, SimGraph graph, GraphNodeParams.Conditional params) {
    SimCondition condition = machine.graphs.conditions.get(params.condition());
    if (!graph.isWithin(condition.graph)) {
      throw SimRefusal.invalidValue(
          "condition: 0x%x of graph 0x%x (expected: of graph 0x%x or one around it)"
              .formatted(params.condition(), condition.graph.handle, graph.handle));
    }
    if (condition.node() != null || condition.device != device) {
      throw SimRefusal.invalidValue(
          "condition: 0x%x (expected: of device %d, and of no other node)"
              .formatted(params.condition(), device.index));
    }
    int most =
        switch (params.conditionType()) {
          case IF -> 2;
          case WHILE -> 1;
          case SWITCH -> Integer.MAX_VALUE;
        };
    if (params.size() < 1 || params.size() > most) {
      throw SimRefusal.invalidValue(
          "size: %d (expected: 1 to %d for %s)"
              .formatted(params.size(), most, params.conditionType()));
    }
    List<SimGraph> bodies =
        Stream.generate(() -> new SimGraph(machine.graphs, graph)).limit(params.size()).toList();
    return new NodeWork(
        device, params, new NodeTask.Conditional(condition, params.conditionType(), bodies));
  }
}

package io.cuvette.sim.internal.calls;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphEdge;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.driver.GraphUpdateResult;
import io.cuvette.driver.InstantiatedGraph;
import io.cuvette.driver.UserObject;
import io.cuvette.sim.internal.base.HandleKind;
import io.cuvette.sim.internal.base.HandleTable;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.graph.ExecUpdate;
import io.cuvette.sim.internal.graph.GraphDot;
import io.cuvette.sim.internal.graph.Instantiation;
import io.cuvette.sim.internal.graph.NodeTask;
import io.cuvette.sim.internal.graph.NodeWork;
import io.cuvette.sim.internal.graph.SimExecutable;
import io.cuvette.sim.internal.graph.SimGraph;
import io.cuvette.sim.internal.graph.SimNode;
import io.cuvette.sim.internal.graph.SimUserObject;
import io.cuvette.sim.internal.machine.SimCosts;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimStream;
import java.util.Collection;
import java.util.List;
import java.util.function.Supplier;

/** The calls about graphs. Thread-safe. */
public final class SimGraphCalls implements GraphCalls {
  private static final long UPLOADS = 2;

  public final HandleTable<SimExecutable> executables =
      new HandleTable<>(HandleKind.EXECUTABLE, false);
  public final HandleTable<SimUserObject> userObjects =
      new HandleTable<>(HandleKind.USER_OBJECT, true);
  private final SimMachine machine;
  private final NodeMaker maker;

  public SimGraphCalls(
      SimMachine machine,
      SimTransferCalls transfers,
      SimKernelCalls kernels,
      SimEventCalls events) {
    this.machine = machine;
    this.maker = new NodeMaker(machine, transfers, kernels, events);
  }

  private SimGraph graph(long handle) {
    return machine.graphs.graphs.get(handle);
  }

  private SimNode node(long handle) {
    return machine.graphs.nodes.get(handle);
  }

  @Override
  public UserObject userObjectCreate() {
    return machine.call(
        () -> {
          long[] handle = new long[1];
          SimUserObject object = new SimUserObject(() -> userObjects.remove(handle[0]));
          handle[0] = userObjects.add(object);
          return new UserObject(handle[0], object::isDestroyed);
        },
        () -> "cuUserObjectCreate()");
  }

  @Override
  public void userObjectRelease(long object) {
    machine.run(
        () -> userObjects.get(object).release(),
        () -> call("cuUserObjectRelease", "object", object));
  }

  @Override
  public void graphRetainUserObject(long graph, long object) {
    machine.run(
        () -> graph(graph).retain(userObjects.get(object)),
        () -> "cuGraphRetainUserObject(graph=0x%x, object=0x%x)".formatted(graph, object));
  }

  @Override
  public long graphCreate() {
    return machine.callLong(
        () -> new SimGraph(machine.graphs, null).handle, () -> "cuGraphCreate()");
  }

  @Override
  public long graphClone(long graph) {
    return machine.callLong(
        () -> graph(graph).copy(null).handle, () -> call("cuGraphClone", "graph", graph));
  }

  @Override
  public void graphDestroy(long graph) {
    machine.run(
        () -> {
          SimGraph gone = graph(graph);
          gone.checkNotCaptured();
          if (gone.isInside()) {
            throw SimRefusal.invalidValue(
                "graph: 0x%x is inside a node, with which it ends".formatted(graph));
          }
          gone.destroy();
        },
        () -> call("cuGraphDestroy", "graph", graph));
  }

  @Override
  public AddedNode graphAddNode(
      int device, long graph, long[] dependencies, GraphNodeParams params) {
    return machine.call(
        () -> {
          SimDevice owner = machine.working(device);
          SimGraph to = graph(graph);
          List<SimNode> after = to.nodes(dependencies);
          NodeWork work = maker.added(owner, to, params);
          SimNode node = to.add(work, 0, after);
          List<Long> bodies =
              work.task() instanceof NodeTask.Conditional
                  ? work.graphs().stream().map(body -> body.handle).toList()
                  : List.of();
          long address =
              work.params() instanceof GraphNodeParams.Allocation made ? made.address() : 0;
          return new AddedNode(node.handle, address, bodies);
        },
        () ->
            "%s(graph=0x%x, dependencies=%d, %s, device=%d)"
                .formatted(
                    "cuGraphAdd%sNode".formatted(name(params.type())),
                    graph,
                    dependencies.length,
                    params,
                    device));
  }

  /** The type as the functions of CUDA name it. */
  private static String name(GraphNodeType type) {
    return switch (type) {
      case KERNEL -> "Kernel";
      case MEMCPY -> "Memcpy";
      case MEMSET -> "Memset";
      case HOST -> "Host";
      case GRAPH -> "ChildGraph";
      case EMPTY -> "Empty";
      case WAIT_EVENT -> "EventWait";
      case EVENT_RECORD -> "EventRecord";
      case MEM_ALLOC -> "MemAlloc";
      case MEM_FREE -> "MemFree";
      default -> "";
    };
  }

  @Override
  public void graphDestroyNode(long node) {
    machine.run(
        () -> {
          SimNode gone = node(node);
          gone.graph.remove(gone);
        },
        () -> call("cuGraphDestroyNode", "node", node));
  }

  @Override
  public GraphNodeType graphNodeGetType(long node) {
    return machine.call(() -> node(node).type(), () -> call("cuGraphNodeGetType", "node", node));
  }

  @Override
  public GraphNodeParams graphNodeGetParams(long node) {
    return machine.call(
        () -> {
          GraphNodeParams params = node(node).work().params();
          return switch (params) {
            case GraphNodeParams.Kernel kernel ->
                new GraphNodeParams.Kernel(
                    kernel.kernel(),
                    kernel.shape(),
                    SimKernelCalls.copy(kernel.parameters().places(), kernel.parameters()));
            case GraphNodeParams.Conditional _ -> new GraphNodeParams.Other(params.type());
            default -> params;
          };
        },
        () -> call("cuGraphNodeGetParams", "node", node));
  }

  @Override
  public void graphNodeSetParams(int device, long node, GraphNodeParams params) {
    machine.run(
        () -> {
          SimDevice owner = machine.working(device);
          SimNode changed = node(node);
          changed.checkChange(params, false);
          changed.work(maker.changed(owner, params));
        },
        () ->
            "cuGraph%sNodeSetParams(node=0x%x, %s, device=%d)"
                .formatted(name(params.type()), node, params, device));
  }

  @Override
  public int graphKernelNodeGetPriority(long node) {
    return machine.call(
        () -> node(node).priority(), () -> call("cuGraphKernelNodeGetAttribute", "node", node));
  }

  @Override
  public void graphKernelNodeSetPriority(long node, int priority) {
    machine.run(
        () ->
            node(node)
                .priority(
                    Math.clamp(
                        priority,
                        SimDeviceCalls.PRIORITIES.greatest(),
                        SimDeviceCalls.PRIORITIES.least())),
        () -> "cuGraphKernelNodeSetAttribute(node=0x%x, priority=%d)".formatted(node, priority));
  }

  @Override
  public long graphNodeFindInClone(long node, long clone) {
    return machine.callLong(
        () -> graph(clone).copyOf(node(node)).handle,
        () -> "cuGraphNodeFindInClone(node=0x%x, clone=0x%x)".formatted(node, clone));
  }

  @Override
  public long[] graphGetNodes(long graph) {
    return nodes(() -> graph(graph).nodes(), () -> call("cuGraphGetNodes", "graph", graph));
  }

  @Override
  public long[] graphGetRootNodes(long graph) {
    return nodes(() -> graph(graph).roots(), () -> call("cuGraphGetRootNodes", "graph", graph));
  }

  @Override
  public List<GraphEdge> graphGetEdges(long graph) {
    return machine.call(() -> graph(graph).edges(), () -> call("cuGraphGetEdges", "graph", graph));
  }

  @Override
  public long[] graphNodeGetDependencies(long node) {
    return nodes(
        () -> node(node).dependencies(), () -> call("cuGraphNodeGetDependencies", "node", node));
  }

  @Override
  public long[] graphNodeGetDependentNodes(long node) {
    return nodes(
        () -> node(node).dependents(), () -> call("cuGraphNodeGetDependentNodes", "node", node));
  }

  private long[] nodes(Supplier<Collection<SimNode>> nodes, Supplier<String> name) {
    return machine.call(() -> SimNode.handles(nodes.get()), name);
  }

  @Override
  public void graphAddDependencies(long graph, List<GraphEdge> edges) {
    machine.run(
        () -> graph(graph).addEdges(edges),
        () -> "cuGraphAddDependencies(graph=0x%x, %s)".formatted(graph, edges));
  }

  @Override
  public void graphRemoveDependencies(long graph, List<GraphEdge> edges) {
    machine.run(
        () -> graph(graph).removeEdges(edges),
        () -> "cuGraphRemoveDependencies(graph=0x%x, %s)".formatted(graph, edges));
  }

  @Override
  public long graphConditionalHandleCreate(
      int device, long graph, int defaultValue, boolean assignsDefault) {
    return machine.callLong(
        () -> graph(graph).condition(machine.working(device), defaultValue, assignsDefault).handle,
        () ->
            "cuGraphConditionalHandleCreate(graph=0x%x, default=%d, assigned=%b, device=%d)"
                .formatted(graph, defaultValue, assignsDefault, device));
  }

  @Override
  public String graphDebugDotPrint(long graph, int flags) {
    return machine.call(
        () -> GraphDot.of(graph(graph), flags),
        () -> "cuGraphDebugDotPrint(graph=0x%x, flags=%d)".formatted(graph, flags));
  }

  @Override
  public InstantiatedGraph graphInstantiateWithParams(
      int device, long graph, long flags, long uploadStream) {
    return machine.call(
        () -> instantiate(machine.working(device), graph, flags, uploadStream),
        () -> "cuGraphInstantiateWithParams(graph=0x%x, flags=%d)".formatted(graph, flags));
  }

  private InstantiatedGraph instantiate(
      SimDevice device, long graph, long flags, long uploadStream) {
    boolean uploads = (flags & UPLOADS) != 0;
    SimStream stream = uploads ? uncaptured(device, uploadStream) : device.legacy();
    Instantiation made = Instantiation.of(graph(graph), flags);
    SimExecutable executable = made.executable();
    if (executable != null && uploads) {
      try {
        executable.upload(stream, machine);
      } catch (SimRefusal e) {
        executable.destroy();
        throw e;
      }
    }
    return new InstantiatedGraph(
        executable == null ? 0 : executables.add(executable), made.result(), made.errorNode());
  }

  /** A stream for calls that are not captured. */
  private SimStream uncaptured(SimDevice device, long handle) {
    SimStream stream = machine.stream(device, handle);
    machine.captures.checkQuery(stream);
    return stream;
  }

  @Override
  public long graphExecGetFlags(long executable) {
    return machine.callLong(
        () -> executables.get(executable).flags,
        () -> call("cuGraphExecGetFlags", "executable", executable));
  }

  @Override
  public GraphUpdateResult graphExecUpdate(int device, long executable, long graph) {
    return machine.call(
        () -> {
          machine.working(device);
          return ExecUpdate.all(executables.get(executable), graph(graph));
        },
        () -> "cuGraphExecUpdate(executable=0x%x, graph=0x%x)".formatted(executable, graph));
  }

  @Override
  public void graphExecNodeSetParams(
      int device, long executable, long node, GraphNodeParams params) {
    machine.run(
        () -> {
          SimDevice owner = machine.working(device);
          SimExecutable changed = executables.get(executable);
          SimNode of = node(node);
          of.checkChange(params, true);
          if (params instanceof GraphNodeParams.Child child) {
            ExecUpdate.child(changed, of, graph(child.graph()));
          } else {
            ExecUpdate.one(changed, of, maker.changed(owner, params));
          }
        },
        () ->
            "cuGraphExec%sNodeSetParams(executable=0x%x, node=0x%x, %s, device=%d)"
                .formatted(name(params.type()), executable, node, params, device));
  }

  @Override
  public void graphNodeSetEnabled(long executable, long node, boolean isEnabled) {
    machine.run(
        () -> executables.get(executable).enable(node(node), isEnabled),
        () ->
            "cuGraphNodeSetEnabled(executable=0x%x, node=0x%x, enabled=%b)"
                .formatted(executable, node, isEnabled));
  }

  @Override
  public boolean graphNodeGetEnabled(long executable, long node) {
    return machine.call(
        () -> executables.get(executable).isEnabled(node(node)),
        () -> "cuGraphNodeGetEnabled(executable=0x%x, node=0x%x)".formatted(executable, node));
  }

  @Override
  public void graphUpload(int device, long executable, long stream) {
    machine.run(
        () ->
            executables
                .get(executable)
                .upload(uncaptured(machine.working(device), stream), machine),
        () -> "cuGraphUpload(executable=0x%x, stream=0x%x)".formatted(executable, stream));
  }

  /** As driver 580 does, it is refused in a stream that is captured, and the capture is lost. */
  @Override
  public void graphLaunch(int device, long executable, long stream) {
    machine.run(
        () -> {
          SimStream queue = uncaptured(machine.working(device), stream);
          SimExecutable launched = executables.get(executable);
          machine.spend(SimCosts.SUBMIT);
          launched.launch(queue, machine);
        },
        () -> "cuGraphLaunch(executable=0x%x, stream=0x%x)".formatted(executable, stream));
  }

  @Override
  public void graphExecDestroy(long executable) {
    machine.run(
        () -> executables.remove(executable).destroy(),
        () -> call("cuGraphExecDestroy", "executable", executable));
  }

  @Override
  public long deviceGetGraphMemAttribute(int device, GraphMemAttribute attribute) {
    return machine.callLong(
        () -> machine.graphMemory(machine.device(device)).get(attribute),
        () -> "cuDeviceGetGraphMemAttribute(device=%d, %s)".formatted(device, attribute));
  }

  @Override
  public void deviceResetGraphMemAttribute(int device, GraphMemAttribute attribute) {
    machine.run(
        () -> machine.graphMemory(machine.device(device)).reset(attribute),
        () -> "cuDeviceSetGraphMemAttribute(device=%d, %s)".formatted(device, attribute));
  }

  @Override
  public void deviceGraphMemTrim(int device) {
    machine.run(
        () -> machine.graphMemory(machine.device(device)).trim(),
        () -> "cuDeviceGraphMemTrim(device=%d)".formatted(device));
  }

  private static String call(String name, String parameter, long handle) {
    return "%s(%s=0x%x)".formatted(name, parameter, handle);
  }
}

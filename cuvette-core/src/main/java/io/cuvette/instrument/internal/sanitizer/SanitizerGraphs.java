package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphEdge;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.driver.GraphUpdateResult;
import io.cuvette.driver.InstantiatedGraph;
import io.cuvette.driver.UserObject;
import io.cuvette.instrument.internal.memory.KnownGraphs.NodeEvents;
import io.cuvette.instrument.internal.memory.KnownGraphs.NodeUse;
import io.cuvette.instrument.internal.memory.KnownLaunches;
import io.cuvette.instrument.internal.memory.KnownObjects;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/** The part of the sanitizer that watches graphs. Thread-safe. */
public final class SanitizerGraphs implements GraphCalls {
  private final GraphCalls calls;
  private final SanitizerCore core;
  private final GraphReading reading;
  private final boolean tells;

  public SanitizerGraphs(CudaDriver driver, SanitizerCore core) {
    this.calls = driver.graphs();
    this.core = core;
    this.reading = new GraphReading(calls, core);
    this.tells = driver.isSimulated();
  }

  /** What a node does, of which somebody learns what a kernel touches, if the driver tells it. */
  private GraphNodeParams told(GraphNodeParams params) {
    return tells && params instanceof GraphNodeParams.Kernel(var kernel, var shape, var given)
        ? new GraphNodeParams.Kernel(kernel, shape, given.watchedBy(KnownLaunches.watcher()))
        : params;
  }

  @Override
  public void graphLaunch(int device, long executable, long stream) {
    CallTrace site = CallTrace.of("graphLaunch", "executable", executable, "stream", stream);
    core.check(_ -> core.memory.hostReads.clear());
    Lane lane =
        core.locked(findings -> {
          Lane into = core.streams.lane(device, stream, site, findings);
          if (into != null && into.capture() == null) {
            core.graphs.check(executable, into, site, findings);
          }
          return into;
        });
    core.unseen(lane, site);
    calls.graphLaunch(device, executable, stream);
    if (lane != null && lane.capture() == null) {
      core.check(_ -> core.graphs.launched(executable, lane, site));
    }
  }

  @Override
  public void graphDestroy(long graph) {
    CallTrace site = CallTrace.of("graphDestroy", "graph", graph);
    List<KnownObjects.Retained> held = core.locked(_ -> core.graphs.objects.ended(graph));
    try {
      core.destroy(core.streams.graphs, graph, site, () -> calls.graphDestroy(graph));
    } catch (RuntimeException e) {
      core.check(_ -> core.graphs.objects.restored(graph, held));
      throw e;
    }
  }

  @Override
  public long graphCreate() {
    CallTrace site = CallTrace.of("graphCreate");
    long graph = calls.graphCreate();
    core.check(_ -> core.streams.graphs.add(graph, true, site));
    return graph;
  }

  @Override
  public long graphClone(long graph) {
    CallTrace site = CallTrace.of("graphClone", "graph", graph);
    long clone = calls.graphClone(graph);
    core.check(_ -> core.streams.graphs.add(clone, true, site));
    core.check(_ -> core.graphs.objects.copied(graph, clone));
    return clone;
  }

  @Override
  public AddedNode graphAddNode(
      int device, long graph, long[] dependencies, GraphNodeParams params) {
    AddedNode node = calls.graphAddNode(device, graph, dependencies, told(params));
    reading.added(node);
    if (params instanceof GraphNodeParams.Child child) {
      core.check(_ -> core.graphs.objects.copied(child.graph(), graph));
    }
    return node;
  }

  @Override
  public void graphDestroyNode(long node) {
    calls.graphDestroyNode(node);
  }

  @Override
  public GraphNodeType graphNodeGetType(long node) {
    return calls.graphNodeGetType(node);
  }

  @Override
  public GraphNodeParams graphNodeGetParams(long node) {
    return calls.graphNodeGetParams(node);
  }

  @Override
  public void graphNodeSetParams(int device, long node, GraphNodeParams params) {
    calls.graphNodeSetParams(device, node, told(params));
  }

  @Override
  public int graphKernelNodeGetPriority(long node) {
    return calls.graphKernelNodeGetPriority(node);
  }

  @Override
  public void graphKernelNodeSetPriority(long node, int priority) {
    calls.graphKernelNodeSetPriority(node, priority);
  }

  @Override
  public long graphNodeFindInClone(long node, long clone) {
    return calls.graphNodeFindInClone(node, clone);
  }

  @Override
  public long[] graphGetNodes(long graph) {
    return calls.graphGetNodes(graph);
  }

  @Override
  public long[] graphGetRootNodes(long graph) {
    return calls.graphGetRootNodes(graph);
  }

  @Override
  public List<GraphEdge> graphGetEdges(long graph) {
    return calls.graphGetEdges(graph);
  }

  @Override
  public long[] graphNodeGetDependencies(long node) {
    return calls.graphNodeGetDependencies(node);
  }

  @Override
  public long[] graphNodeGetDependentNodes(long node) {
    return calls.graphNodeGetDependentNodes(node);
  }

  @Override
  public void graphAddDependencies(long graph, List<GraphEdge> edges) {
    calls.graphAddDependencies(graph, edges);
  }

  @Override
  public void graphRemoveDependencies(long graph, List<GraphEdge> edges) {
    calls.graphRemoveDependencies(graph, edges);
  }

  @Override
  public long graphConditionalHandleCreate(
      int device, long graph, int defaultValue, boolean assignsDefault) {
    return calls.graphConditionalHandleCreate(device, graph, defaultValue, assignsDefault);
  }

  @Override
  public String graphDebugDotPrint(long graph, int flags) {
    return calls.graphDebugDotPrint(graph, flags);
  }

  @Override
  public InstantiatedGraph graphInstantiateWithParams(
      int device, long graph, long flags, long uploadStream) {
    List<NodeUse> nodes = reading.nodes(graph);
    InstantiatedGraph made = calls.graphInstantiateWithParams(device, graph, flags, uploadStream);
    if (made.executable() != 0) {
      core.check(_ -> core.graphs.instantiated(made.executable(), graph, nodes));
    }
    return made;
  }

  @Override
  public long graphExecGetFlags(long executable) {
    return calls.graphExecGetFlags(executable);
  }

  @Override
  public GraphUpdateResult graphExecUpdate(int device, long executable, long graph) {
    List<NodeUse> nodes = reading.nodes(graph);
    GraphUpdateResult result = calls.graphExecUpdate(device, executable, graph);
    if (result.result() == 0) {
      core.check(_ -> core.graphs.updated(executable, graph, nodes));
    }
    return result;
  }

  @Override
  public void graphExecNodeSetParams(
      int device, long executable, long node, GraphNodeParams params) {
    GraphNodeParams told = told(params);
    calls.graphExecNodeSetParams(device, executable, node, told);
    core.check(
        _ -> core.graphs.changed(executable, node, reading.ranges(told), NodeEvents.of(told)));
  }

  @Override
  public void graphNodeSetEnabled(long executable, long node, boolean isEnabled) {
    calls.graphNodeSetEnabled(executable, node, isEnabled);
    core.check(_ -> core.graphs.enabled(executable, node, isEnabled));
  }

  @Override
  public boolean graphNodeGetEnabled(long executable, long node) {
    return calls.graphNodeGetEnabled(executable, node);
  }

  @Override
  public void graphUpload(int device, long executable, long stream) {
    calls.graphUpload(device, executable, stream);
  }

  @Override
  public void graphExecDestroy(long executable) {
    core.check(_ -> core.graphs.destroyed(executable));
    calls.graphExecDestroy(executable);
  }

  @Override
  public long deviceGetGraphMemAttribute(int device, GraphMemAttribute attribute) {
    return calls.deviceGetGraphMemAttribute(device, attribute);
  }

  @Override
  public void deviceResetGraphMemAttribute(int device, GraphMemAttribute attribute) {
    calls.deviceResetGraphMemAttribute(device, attribute);
  }

  @Override
  public void deviceGraphMemTrim(int device) {
    calls.deviceGraphMemTrim(device);
  }

  @Override
  public UserObject userObjectCreate() {
    UserObject made = calls.userObjectCreate();
    KnownObjects.Retained known = core.locked(_ -> core.graphs.objects.created(made.handle()));
    AtomicBoolean seen = new AtomicBoolean();
    return new UserObject(
        made.handle(),
        () -> {
          boolean destroyed = made.isDestroyed();
          if (destroyed && !seen.get()) {
            core.check(_ -> core.graphs.objects.destroyed(known));
            seen.set(true);
          }
          return destroyed;
        });
  }

  @Override
  public void userObjectRelease(long object) {
    core.check(_ -> core.graphs.objects.released(object)); // first: the handle may be given again
    calls.userObjectRelease(object);
  }

  @Override
  public void graphRetainUserObject(long graph, long object) {
    calls.graphRetainUserObject(graph, object);
    core.check(_ -> core.graphs.objects.retained(graph, object));
  }
}

package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphUpdateResult;
import io.cuvette.driver.InstantiatedGraph;
import io.cuvette.driver.UserObject;
import io.cuvette.instrument.ForwardingGraphs;
import io.cuvette.instrument.internal.memory.KnownGraphs.NodeEvents;
import io.cuvette.instrument.internal.memory.KnownGraphs.NodeUse;
import io.cuvette.instrument.internal.memory.KnownObjects;
import io.cuvette.instrument.internal.order.Beginnings;
import io.cuvette.instrument.internal.order.HostFunction;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import io.cuvette.instrument.internal.report.Findings;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The part of the sanitizer that watches graphs. Thread-safe. */
public final class SanitizerGraphs extends ForwardingGraphs {
  private final GraphCalls calls;
  private final SanitizerCore core;
  private final GraphReading reading;
  private final boolean tells;

  public SanitizerGraphs(CudaDriver driver, SanitizerCore core) {
    super(driver.graphs());
    this.calls = driver.graphs();
    this.core = core;
    this.reading = new GraphReading(calls, core);
    this.tells = driver.isSimulated();
  }

  /** What a node does, of which somebody learns what a kernel touches, and when a function runs. */
  private GraphNodeParams told(GraphNodeParams params) {
    return switch (params) {
      case GraphNodeParams.Kernel(var kernel, var shape, var given) when tells ->
          new GraphNodeParams.Kernel(
              kernel, shape, given.watchedBy(core.memory.launches.watcher()));
      case GraphNodeParams.Host(var function) when !(function instanceof HostFunction) ->
          new GraphNodeParams.Host(new HostFunction(function, core::finishWithin));
      default -> params;
    };
  }

  @Override
  public void graphLaunch(int device, long executable, long stream) {
    CallTrace site = CallTrace.of("graphLaunch", "executable", executable, "stream", stream);
    Lane lane = core.lane("graphLaunch", device, stream);
    core.askForShown();
    core.check(findings -> core.streams.checkLive(executable, site, findings));
    Lane ahead = core.locked(findings -> ahead(executable, lane, site, findings));
    List<Beginnings> parts = core.locked(_ -> core.graphs.beginnings(executable));
    core.launch(
        parts,
        () -> calls.graphLaunch(device, executable, stream),
        _ -> {
          if (lane != null && ahead != null) {
            lane.seen.merge(ahead.seen);
            core.graphs.launched(executable, lane, site);
          }
        });
  }

  /** Checks a launch ahead of its stream; null if it is captured. */
  private @Nullable Lane ahead(
      long executable, @Nullable Lane lane, CallTrace site, Findings findings) {
    if (lane == null || lane.capture() != null) {
      return null;
    }
    Lane ahead = core.streams.order.ahead(lane);
    core.memory.hostReads.clear();
    core.memory.hostReads.unseen(lane, site);
    core.graphs.check(executable, ahead, site, findings);
    return ahead;
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
  public void graphNodeSetParams(int device, long node, GraphNodeParams params) {
    calls.graphNodeSetParams(device, node, told(params));
  }

  @Override
  public InstantiatedGraph graphInstantiateWithParams(
      int device, long graph, long flags, long uploadStream) {
    CallTrace site = CallTrace.of("graphInstantiateWithParams", "graph", graph);
    List<NodeUse> nodes = reading.nodes(graph);
    InstantiatedGraph made = calls.graphInstantiateWithParams(device, graph, flags, uploadStream);
    if (made.executable() != 0) {
      core.check(_ -> core.streams.executables.add(made.executable(), true, site));
      core.check(_ -> core.graphs.instantiated(made.executable(), graph, nodes));
    }
    return made;
  }

  @Override
  public GraphUpdateResult graphExecUpdate(int device, long executable, long graph) {
    CallTrace site = CallTrace.of("graphExecUpdate", "executable", executable, "graph", graph);
    core.check(findings -> core.streams.checkLive(executable, site, findings));
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
  public void graphExecDestroy(long executable) {
    CallTrace site = CallTrace.of("graphExecDestroy", "executable", executable);
    core.check(_ -> core.graphs.destroyed(executable));
    core.destroy(
        core.streams.executables, executable, site, () -> calls.graphExecDestroy(executable));
  }

  @Override
  public UserObject userObjectCreate() {
    UserObject made = calls.userObjectCreate();
    KnownObjects.Retained known = core.locked(_ -> core.graphs.objects.created(made.handle()));
    return new UserObject(
        made.handle(),
        () -> {
          boolean destroyed = made.isDestroyed();
          if (destroyed) {
            core.check(_ -> core.graphs.objects.destroyed(known));
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

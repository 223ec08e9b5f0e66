package io.cuvette.instrument;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphEdge;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.driver.GraphUpdateResult;
import io.cuvette.driver.InstantiatedGraph;
import io.cuvette.driver.UserObject;
import java.util.List;
import java.util.Objects;

/**
 * Forwards the calls about graphs to those of another driver; a decorator overrides what it
 * changes. Thread-safe if the other driver is.
 */
public abstract class ForwardingGraphs implements GraphCalls {
  private final GraphCalls delegate;

  /**
   * Forwards to the part of a driver.
   *
   * @param delegate the driver or part that calls are forwarded to
   */
  protected ForwardingGraphs(GraphCalls delegate) {
    this.delegate = Objects.requireNonNull(delegate, "delegate");
  }

  @Override
  public long graphCreate() {
    return delegate.graphCreate();
  }

  @Override
  public long graphClone(long graph) {
    return delegate.graphClone(graph);
  }

  @Override
  public void graphDestroy(long graph) {
    delegate.graphDestroy(graph);
  }

  @Override
  public AddedNode graphAddNode(
      int device, long graph, long[] dependencies, GraphNodeParams params) {
    return delegate.graphAddNode(device, graph, dependencies, params);
  }

  @Override
  public void graphDestroyNode(long node) {
    delegate.graphDestroyNode(node);
  }

  @Override
  public GraphNodeType graphNodeGetType(long node) {
    return delegate.graphNodeGetType(node);
  }

  @Override
  public GraphNodeParams graphNodeGetParams(long node) {
    return delegate.graphNodeGetParams(node);
  }

  @Override
  public void graphNodeSetParams(int device, long node, GraphNodeParams params) {
    delegate.graphNodeSetParams(device, node, params);
  }

  @Override
  public int graphKernelNodeGetPriority(long node) {
    return delegate.graphKernelNodeGetPriority(node);
  }

  @Override
  public void graphKernelNodeSetPriority(long node, int priority) {
    delegate.graphKernelNodeSetPriority(node, priority);
  }

  @Override
  public long graphNodeFindInClone(long node, long clone) {
    return delegate.graphNodeFindInClone(node, clone);
  }

  @Override
  public long[] graphGetNodes(long graph) {
    return delegate.graphGetNodes(graph);
  }

  @Override
  public long[] graphGetRootNodes(long graph) {
    return delegate.graphGetRootNodes(graph);
  }

  @Override
  public List<GraphEdge> graphGetEdges(long graph) {
    return delegate.graphGetEdges(graph);
  }

  @Override
  public long[] graphNodeGetDependencies(long node) {
    return delegate.graphNodeGetDependencies(node);
  }

  @Override
  public long[] graphNodeGetDependentNodes(long node) {
    return delegate.graphNodeGetDependentNodes(node);
  }

  @Override
  public void graphAddDependencies(long graph, List<GraphEdge> edges) {
    delegate.graphAddDependencies(graph, edges);
  }

  @Override
  public void graphRemoveDependencies(long graph, List<GraphEdge> edges) {
    delegate.graphRemoveDependencies(graph, edges);
  }

  @Override
  public long graphConditionalHandleCreate(
      int device, long graph, int defaultValue, boolean assignsDefault) {
    return delegate.graphConditionalHandleCreate(device, graph, defaultValue, assignsDefault);
  }

  @Override
  public String graphDebugDotPrint(long graph, int flags) {
    return delegate.graphDebugDotPrint(graph, flags);
  }

  @Override
  public InstantiatedGraph graphInstantiateWithParams(
      int device, long graph, long flags, long uploadStream) {
    return delegate.graphInstantiateWithParams(device, graph, flags, uploadStream);
  }

  @Override
  public long graphExecGetFlags(long executable) {
    return delegate.graphExecGetFlags(executable);
  }

  @Override
  public GraphUpdateResult graphExecUpdate(int device, long executable, long graph) {
    return delegate.graphExecUpdate(device, executable, graph);
  }

  @Override
  public void graphExecNodeSetParams(
      int device, long executable, long node, GraphNodeParams params) {
    delegate.graphExecNodeSetParams(device, executable, node, params);
  }

  @Override
  public void graphNodeSetEnabled(long executable, long node, boolean isEnabled) {
    delegate.graphNodeSetEnabled(executable, node, isEnabled);
  }

  @Override
  public boolean graphNodeGetEnabled(long executable, long node) {
    return delegate.graphNodeGetEnabled(executable, node);
  }

  @Override
  public void graphUpload(int device, long executable, long stream) {
    delegate.graphUpload(device, executable, stream);
  }

  @Override
  public void graphLaunch(int device, long executable, long stream) {
    delegate.graphLaunch(device, executable, stream);
  }

  @Override
  public void graphExecDestroy(long executable) {
    delegate.graphExecDestroy(executable);
  }

  @Override
  public long deviceGetGraphMemAttribute(int device, GraphMemAttribute attribute) {
    return delegate.deviceGetGraphMemAttribute(device, attribute);
  }

  @Override
  public void deviceResetGraphMemAttribute(int device, GraphMemAttribute attribute) {
    delegate.deviceResetGraphMemAttribute(device, attribute);
  }

  @Override
  public void deviceGraphMemTrim(int device) {
    delegate.deviceGraphMemTrim(device);
  }

  @Override
  public UserObject userObjectCreate() {
    return delegate.userObjectCreate();
  }

  @Override
  public void userObjectRelease(long object) {
    delegate.userObjectRelease(object);
  }

  @Override
  public void graphRetainUserObject(long graph, long object) {
    delegate.graphRetainUserObject(graph, object);
  }
}

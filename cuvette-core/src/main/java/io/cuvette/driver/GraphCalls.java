package io.cuvette.driver;

import java.util.List;

/**
 * Driver calls about graphs: their nodes, what is instantiated from them, the memory of their
 * allocation nodes, and the objects that they retain. Thread-safe, except that calls on one graph,
 * or on one executable, must not overlap, as CUDA says of both.
 */
public interface GraphCalls {

  /**
   * Creates an empty graph; the caller destroys it (cuGraphCreate).
   *
   * @return the handle of the graph
   * @throws CudaException if the driver reports an error
   */
  long graphCreate();

  /**
   * Creates a graph with copies of all nodes; the caller destroys it (cuGraphClone). Not for graphs
   * with allocation, free or conditional nodes, which CUDA refuses.
   *
   * @param graph the handle of the graph
   * @return the handle of the clone
   * @throws CudaException if the driver reports an error
   */
  long graphClone(long graph);

  /**
   * Destroys a graph; what was instantiated from it stays (cuGraphDestroy).
   *
   * @param graph the handle of the graph
   * @throws CudaException if the driver reports an error
   */
  void graphDestroy(long graph);

  /**
   * Adds a node (cuGraphAddKernelNode, cuGraphAddMemcpyNode and the others of the type;
   * cuGraphAddNode for conditional nodes, which needs CUDA 12.3).
   *
   * @param device the device whose context kernels, copies, fills and conditions use, from 0
   * @param graph the handle of the graph
   * @param dependencies the nodes of the graph that it waits for
   * @param params what the node does
   * @return the node
   * @throws CudaException if the driver reports an error
   */
  AddedNode graphAddNode(int device, long graph, long[] dependencies, GraphNodeParams params);

  /**
   * Removes a node from its graph, with its edges (cuGraphDestroyNode). What has been instantiated
   * keeps it.
   *
   * @param node the handle of the node
   * @throws CudaException if the driver reports an error
   */
  void graphDestroyNode(long node);

  /**
   * {@return the type of a node (cuGraphNodeGetType)}
   *
   * @param node the handle of the node
   * @throws CudaException if the driver reports an error
   */
  GraphNodeType graphNodeGetType(long node);

  /**
   * Reads what a node does (cuGraphKernelNodeGetParams, cuGraphMemcpyNodeGetParams and the others
   * of the type). The values of a kernel's parameters are a copy; they are empty if the driver does
   * not report their sizes, for which CUDA 12.4 is needed.
   *
   * @param node the handle of the node
   * @return what it does; {@link GraphNodeParams.Other} for what cannot be determined
   * @throws CudaException if the driver reports an error
   */
  GraphNodeParams graphNodeGetParams(long node);

  /**
   * Changes what a node does, for what is instantiated from now on (cuGraphKernelNodeSetParams,
   * cuGraphMemcpyNodeSetParams, cuGraphMemsetNodeSetParams, cuGraphHostNodeSetParams,
   * cuGraphEventRecordNodeSetEvent, cuGraphEventWaitNodeSetEvent). Nodes of other types cannot be
   * changed; nor can a host node that was made with a function of C be given one of Java.
   *
   * @param device the device, from 0
   * @param node the handle of the node
   * @param params what the node does
   * @throws CudaException if the driver reports an error
   */
  void graphNodeSetParams(int device, long node, GraphNodeParams params);

  /**
   * {@return the priority of a kernel node, as of a stream (cuGraphKernelNodeGetAttribute)}
   *
   * @param node the handle of the node
   * @throws CudaException if the driver reports an error
   */
  int graphKernelNodeGetPriority(long node);

  /**
   * Sets the priority of a kernel node, for what is instantiated with the flag that lets nodes have
   * their own (cuGraphKernelNodeSetAttribute).
   *
   * @param node the handle of the node
   * @param priority as of a stream: lower numbers first; clamped by the driver to its range
   * @throws CudaException if the driver reports an error
   */
  void graphKernelNodeSetPriority(long node, int priority);

  /**
   * {@return the node of a clone that is the copy of a node (cuGraphNodeFindInClone)}
   *
   * @param node the handle of the node
   * @param clone the handle of the clone
   * @throws CudaException if the driver reports an error
   */
  long graphNodeFindInClone(long node, long clone);

  /**
   * {@return the nodes of a graph, in no order (cuGraphGetNodes)}
   *
   * @param graph the handle of the graph
   * @throws CudaException if the driver reports an error
   */
  long[] graphGetNodes(long graph);

  /**
   * {@return the nodes of a graph that wait for none (cuGraphGetRootNodes)}
   *
   * @param graph the handle of the graph
   * @throws CudaException if the driver reports an error
   */
  long[] graphGetRootNodes(long graph);

  /**
   * {@return the edges of a graph, in no order (cuGraphGetEdges)}
   *
   * @param graph the handle of the graph
   * @throws CudaException if the driver reports an error
   */
  List<GraphEdge> graphGetEdges(long graph);

  /**
   * {@return the nodes that a node waits for (cuGraphNodeGetDependencies)}
   *
   * @param node the handle of the node
   * @throws CudaException if the driver reports an error
   */
  long[] graphNodeGetDependencies(long node);

  /**
   * {@return the nodes that wait for a node (cuGraphNodeGetDependentNodes)}
   *
   * @param node the handle of the node
   * @throws CudaException if the driver reports an error
   */
  long[] graphNodeGetDependentNodes(long node);

  /**
   * Adds edges, all or none of them (cuGraphAddDependencies).
   *
   * @param graph the handle of the graph
   * @param edges the edges
   * @throws CudaException if the driver reports an error
   */
  void graphAddDependencies(long graph, List<GraphEdge> edges);

  /**
   * Removes edges, all or none of them (cuGraphRemoveDependencies).
   *
   * @param graph the handle of the graph
   * @param edges the edges
   * @throws CudaException if the driver reports an error
   */
  void graphRemoveDependencies(long graph, List<GraphEdge> edges);

  /**
   * Creates the handle of a condition, which belongs to a graph and is set by kernels
   * (cuGraphConditionalHandleCreate).
   *
   * @param device the device, from 0
   * @param graph the handle of the graph
   * @param defaultValue the value that each launch starts with
   * @param assignsDefault whether launches assign the default value; if not, the value of the
   *     launch before stays
   * @return the handle of the condition
   * @throws CudaException if the driver reports an error
   */
  long graphConditionalHandleCreate(
      int device, long graph, int defaultValue, boolean assignsDefault);

  /**
   * Describes a graph in the language DOT (cuGraphDebugDotPrint).
   *
   * @param graph the handle of the graph
   * @param flags CUgraphDebugDot_flags, 0 for the least
   * @return the text
   * @throws CudaException if the driver reports an error
   */
  String graphDebugDotPrint(long graph, int flags);

  /**
   * Instantiates a graph; the caller destroys the result (cuGraphInstantiateWithParams).
   *
   * @param device the device, from 0
   * @param graph the handle of the graph
   * @param flags CUgraphInstantiate_flags: 1 frees what a launch left allocated when the next one
   *     starts, 2 uploads, 8 nodes have priorities of their own
   * @param uploadStream the stream that flag 2 uploads on
   * @return the executable graph, or why there is none
   * @throws CudaException if the driver reports an error
   */
  InstantiatedGraph graphInstantiateWithParams(
      int device, long graph, long flags, long uploadStream);

  /**
   * {@return the flags that an executable was instantiated with (cuGraphExecGetFlags)}
   *
   * @param executable the handle of the executable graph
   * @throws CudaException if the driver reports an error
   */
  long graphExecGetFlags(long executable);

  /**
   * Gives an executable the parameters of a graph with the same topology, for launches from now on
   * (cuGraphExecUpdate). What is refused changes nothing.
   *
   * @param device the device, from 0
   * @param executable the handle of the executable graph
   * @param graph the graph, not destroyed by this
   * @return whether it was updated, or why not
   * @throws CudaException if the driver reports an error
   */
  GraphUpdateResult graphExecUpdate(int device, long executable, long graph);

  /**
   * Changes what a node does in later launches of an executable (cuGraphExecKernelNodeSetParams,
   * cuGraphExecMemcpyNodeSetParams, cuGraphExecMemsetNodeSetParams, cuGraphExecHostNodeSetParams,
   * cuGraphExecChildGraphNodeSetParams, cuGraphExecEventRecordNodeSetEvent,
   * cuGraphExecEventWaitNodeSetEvent). Nodes of other types cannot be changed; nor can clusters and
   * cooperation of a kernel on a GPU, nor a function of C.
   *
   * @param device the device, from 0
   * @param executable the handle of the executable graph
   * @param node the handle of the node in the graph that was instantiated
   * @param params what the node does
   * @throws CudaException if the driver reports an error
   */
  void graphExecNodeSetParams(int device, long executable, long node, GraphNodeParams params);

  /**
   * Says whether a kernel, copy or fill takes part in later launches of an executable; if not it is
   * as an empty node (cuGraphNodeSetEnabled).
   *
   * @param executable the handle of the executable graph
   * @param node the handle of the node in the graph that was instantiated
   * @param isEnabled whether it takes part
   * @throws CudaException if the driver reports an error
   */
  void graphNodeSetEnabled(long executable, long node, boolean isEnabled);

  /**
   * {@return whether a node takes part in launches of an executable (cuGraphNodeGetEnabled)}
   *
   * @param executable the handle of the executable graph
   * @param node the handle of the node in the graph that was instantiated
   * @throws CudaException if the driver reports an error
   */
  boolean graphNodeGetEnabled(long executable, long node);

  /**
   * Prepares an executable for its next launch, in order of a stream (cuGraphUpload).
   *
   * @param device the device, from 0
   * @param executable the handle of the executable graph
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  void graphUpload(int device, long executable, long stream);

  /**
   * Runs an executable in order of a stream (cuGraphLaunch).
   *
   * @param device the device, from 0
   * @param executable the handle of the executable graph
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  void graphLaunch(int device, long executable, long stream);

  /**
   * Destroys an executable; a launch that runs completes (cuGraphExecDestroy).
   *
   * @param executable the handle of the executable graph
   * @throws CudaException if the driver reports an error
   */
  void graphExecDestroy(long executable);

  /**
   * {@return what a device reports about the memory of its graphs, in bytes
   * (cuDeviceGetGraphMemAttribute)}
   *
   * @param device the device, from 0
   * @param attribute which figure
   * @throws CudaException if the driver reports an error
   */
  long deviceGetGraphMemAttribute(int device, GraphMemAttribute attribute);

  /**
   * Sets a high-water mark to 0 (cuDeviceSetGraphMemAttribute).
   *
   * @param device the device, from 0
   * @param attribute USED_HIGH or RESERVED_HIGH
   * @throws CudaException if the driver reports an error
   */
  void deviceResetGraphMemAttribute(int device, GraphMemAttribute attribute);

  /**
   * Gives memory of graphs that is not in use back to the device (cuDeviceGraphMemTrim).
   *
   * @param device the device, from 0
   * @throws CudaException if the driver reports an error
   */
  void deviceGraphMemTrim(int device);

  /**
   * Creates an object with one reference that reports when its last reference is gone
   * (cuUserObjectCreate). No Java code runs on a thread of the driver for that.
   *
   * @return the object, with one reference
   * @throws CudaException if the driver reports an error
   */
  UserObject userObjectCreate();

  /**
   * Releases the reference of {@link #userObjectCreate} (cuUserObjectRelease).
   *
   * @param object the handle of the user object
   * @throws CudaException if the driver reports an error
   */
  void userObjectRelease(long object);

  /**
   * Moves the reference of {@link #userObjectCreate} to a graph, which may still be captured. It is
   * dropped with the last of the graph, its clones, what is instantiated from them, and launches of
   * that (cuGraphRetainUserObject with CU_GRAPH_USER_OBJECT_MOVE).
   *
   * @param graph the handle of the graph
   * @param object the handle of the user object
   * @throws CudaException if the driver reports an error
   */
  void graphRetainUserObject(long graph, long object);
}

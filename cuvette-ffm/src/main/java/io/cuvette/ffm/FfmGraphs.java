package io.cuvette.ffm;

import io.cuvette.driver.CaptureCalls;

/** Calls about graphs and what is instantiated from them. Thread-safe. */
interface FfmGraphs extends FfmCalls, CaptureCalls {

  @Override
  default long graphInstantiate(int device, long graph) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) CaptureFunctions.GRAPH_INSTANTIATE.invokeExact(frame.out, graph, 0L);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuGraphInstantiateWithFlags(graph=%#x, device=%d)", graph, device);
    }
    return result;
  }

  @Override
  default void graphLaunch(int device, long executable, long stream) {
    CallFrame frame = enterAsIs(device);
    int status;
    try {
      status = (int) CaptureFunctions.GRAPH_LAUNCH.invokeExact(executable, stream);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuGraphLaunch(executable=%#x, stream=%#x, device=%d)",
          executable,
          stream,
          device);
    }
  }

  @Override
  default void graphExecDestroy(long executable) {
    CallFrame frame = enterToFree();
    if (frame == null) {
      return;
    }
    int status;
    try {
      status = (int) CaptureFunctions.GRAPH_EXEC_DESTROY.invokeExact(executable);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuGraphExecDestroy(executable=%#x)", executable);
    }
  }

  @Override
  default void graphDestroy(long graph) {
    CallFrame frame = enterToFree();
    if (frame == null) {
      return;
    }
    int status;
    try {
      status = (int) CaptureFunctions.GRAPH_DESTROY.invokeExact(graph);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuGraphDestroy(graph=%#x)", graph);
    }
  }
}

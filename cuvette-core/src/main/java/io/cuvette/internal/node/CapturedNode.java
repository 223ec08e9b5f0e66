package io.cuvette.internal.node;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.graph.GraphArena;
import io.cuvette.internal.graph.OpenGraph;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.stream.DriverStream;
import java.util.function.Function;

/** Adds nodes to what a stream captures, in its order, for which it has no calls. Stateless. */
public final class CapturedNode {
  private CapturedNode() {}

  /** A function of the host. */
  public static void host(OpenStream stream, Runnable code) {
    add(stream, "captureCallback", _ -> NodeWork.function(stream.on().session(), code));
  }

  /** The nodes of another graph, as they are now. */
  public static void child(OpenStream stream, OpenGraph child) {
    NodeWork.checkChild(stream.on(), child);
    OpenGraph copy = child.copy();
    try {
      add(
          stream,
          "captureChild",
          capture -> {
            GraphArena memory = GraphArena.of(capture.memory);
            NodeWork.checkShared(child, memory);
            copy.retained().keepIn(capture.checked("captureChild", stream.state));
            return new GraphNodeParams.Child(copy.handle());
          });
    } finally {
      copy.close();
    }
  }

  /** Nobody queues anything meanwhile: the node would not come before or after it. */
  private static void add(
      OpenStream stream, String call, Function<Capture, GraphNodeParams> params) {
    DriverStream state = stream.state;
    CudaDriver driver = stream.holdToQueue();
    try {
      AddedNode _ = state.capturing.endAlone(() -> added(driver, state, call, params));
    } finally {
      stream.unhold();
    }
  }

  private static AddedNode added(
      CudaDriver driver,
      DriverStream state,
      String call,
      Function<Capture, GraphNodeParams> params) {
    Capture capture = state.capture();
    if (capture == null) {
      throw new IllegalStateException(
          "%s: %s is not capturing a graph (expected: beginCapture before)".formatted(call, state));
    }
    int device = state.device.id();
    CaptureInfo info = state.capturing.info();
    long[] behind = driver.captures().streamGetCaptureDependencies(device, state.handle);
    AddedNode made =
        driver.graphs().graphAddNode(device, info.graph(), behind, params.apply(capture));
    try {
      driver
          .captures()
          .streamUpdateCaptureDependencies(device, state.handle, new long[] {made.node()});
    } catch (RuntimeException e) {
      Failures.runAfter(e, () -> driver.graphs().graphDestroyNode(made.node()));
      throw e;
    }
    return made;
  }
}

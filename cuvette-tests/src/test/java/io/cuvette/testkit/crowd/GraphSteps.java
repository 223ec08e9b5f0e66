package io.cuvette.testkit.crowd;

import io.cuvette.Buffer;
import io.cuvette.CaptureMode;
import io.cuvette.CaptureOptions;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.LaunchConfig;
import java.util.ArrayList;
import java.util.List;

/** Captures, graphs and their launches. */
final class GraphSteps {
  private GraphSteps() {}

  /** The steps, each as often as it is to be done. */
  static List<CrowdStep> all() {
    return List.of(
        GraphSteps::capture,
        GraphSteps::capture,
        GraphSteps::launch,
        GraphSteps::launch,
        GraphSteps::closeExecutable,
        GraphSteps::renew);
  }

  /** Captures on the thread's own stream, or on one that others use, capture and close. */
  private static void capture(CrowdMember by) {
    CudaStream stream = by.onceIn(3) ? by.stream() : by.own;
    CaptureMode[] modes = CaptureMode.values();
    stream.beginCapture(CaptureOptions.DEFAULTS.withMode(modes[by.random.nextInt(modes.length)]));
    List<Buffer> kept = new ArrayList<>();
    CudaGraph graph;
    try {
      try {
        record(by, stream, kept);
      } catch (Throwable e) {
        stream.endCapture().close();
        throw e;
      }
      graph = stream.endCapture();
    } finally {
      kept.forEach(by.crowd.buffers::add);
    }
    if (by.onceIn(4)) {
      by.crowd.graphs.add(graph);
      return;
    }
    try (graph) {
      by.crowd.executables.add(graph.instantiate());
    }
  }

  /** Memory of the graph and from outside, work with both; some is closed while capturing. */
  private static void record(CrowdMember by, CudaStream stream, List<Buffer> kept) {
    for (int i = by.random.nextInt(6); i >= 0; i--) {
      Buffer made = by.crowd.free(by.random).allocate(by.size(), stream);
      kept.add(made);
      made.fill((byte) i, stream);
      if (by.random.nextBoolean()) {
        kept.removeFirst().close();
      }
      captureOrdered(by, stream);
      Buffer other = by.any(by.crowd.buffers);
      if (other != null && by.onceIn(3)) {
        other.fill((byte) 2, stream);
      }
      if (by.onceIn(4)) {
        stream.captureCallback(by.crowd.callbacks::incrementAndGet);
      }
      if (by.onceIn(4)) {
        stream.launch(by.crowd.doNothing, LaunchConfig.forElements(1, 1));
      }
    }
  }

  /** Memory of the driver's pool, which only work behind its allocation may use. */
  private static void captureOrdered(CrowdMember by, CudaStream stream) {
    if (by.onceIn(4)) {
      try (Buffer made = by.crowd.ordered.allocate(by.size(), stream)) {
        made.fill((byte) 3, stream);
      }
    }
  }

  private static void launch(CrowdMember by) {
    CudaGraphExec executable = by.any(by.crowd.executables);
    if (executable != null) {
      executable.launch(by.stream());
    }
  }

  private static void closeExecutable(CrowdMember by) {
    CudaGraphExec taken = by.take(by.crowd.executables);
    if (taken != null) {
      taken.close();
    }
  }

  private static void renew(CrowdMember by) {
    CudaGraph taken = by.take(by.crowd.graphs);
    if (taken == null) {
      return;
    }
    try (taken) {
      CudaGraphExec executable = by.any(by.crowd.executables);
      if (executable == null || by.random.nextBoolean()) {
        by.crowd.executables.add(taken.instantiate());
      } else {
        executable.update(taken);
      }
    }
  }
}

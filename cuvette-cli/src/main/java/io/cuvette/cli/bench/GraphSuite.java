package io.cuvette.cli.bench;

import io.cuvette.Buffer;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaKernel;
import io.cuvette.CudaStream;
import io.cuvette.LaunchConfig;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Graphs of 100 launches of one kernel: the launch of a graph, until the call returns and until the
 * graph has run; its capture and instantiation; the update of an executable by another graph. For
 * one thread.
 */
final class GraphSuite {
  private static final int KERNELS = 100;

  /** A graph takes some 100 µs. */
  private static final int WANTED = 1_000;

  private final CudaKernel kernel;
  private final LaunchConfig config;
  private final CudaStream stream;
  private final Buffer x;
  private final Buffer y;

  /** The parameters of the kernel are (x, y, a number, another). */
  GraphSuite(CudaKernel kernel, LaunchConfig config, CudaStream stream, Buffer x, Buffer y) {
    this.kernel = kernel;
    this.config = config;
    this.stream = stream;
    this.x = x;
    this.y = y;
  }

  void run(Figures figures) {
    Best best = figures.best();
    try (CudaGraph graph = capture(1);
        CudaGraph other = capture(2);
        CudaGraphExec executable = graph.instantiate()) {
      figures.graph(
          "graph-launch",
          best.nanosOfSeries(WANTED, 1, n -> launch(executable, n), stream::synchronize),
          "1.1 x C");
      figures.graph(
          "graph-launch+synchronize",
          best.nanos(WANTED, n -> launchAndWait(executable, n)),
          "1.1 x C");
      figures.graph("graph-capture+instantiate", nanosToInstantiate(best), "1.3 x C");
      figures.graph(
          "graph-update", best.nanos(WANTED, n -> update(executable, graph, other, n)), "1.2 x C");
    }
  }

  private CudaGraph capture(int number) {
    return stream.capture(() -> {
      for (int i = 0; i < KERNELS; i++) {
        stream.launch(kernel, config, x, y, 1f, number);
      }
    });
  }

  private void launch(CudaGraphExec executable, int turns) {
    for (int i = 0; i < turns; i++) {
      executable.launch(stream);
    }
  }

  private void launchAndWait(CudaGraphExec executable, int turns) {
    for (int i = 0; i < turns; i++) {
      executable.launch(stream);
      stream.synchronize();
    }
  }

  /** The ends of what was made are not timed. */
  private double nanosToInstantiate(Best best) {
    Deque<Runnable> ends = new ArrayDeque<>();
    return best.nanosOfSeries(
        WANTED,
        1,
        turns -> {
          for (int i = 0; i < turns; i++) {
            CudaGraph graph = capture(1);
            ends.add(graph::close);
            ends.add(graph.instantiate()::close);
          }
        },
        () -> {
          ends.forEach(Runnable::run);
          ends.clear();
        });
  }

  /** The graphs take turns, so that each time all nodes change. */
  private static void update(
      CudaGraphExec executable, CudaGraph graph, CudaGraph other, int turns) {
    for (int i = 0; i < turns; i++) {
      executable.update(i % 2 == 0 ? other : graph);
    }
  }
}

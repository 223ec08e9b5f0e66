package io.cuvette.benchmarks;

import com.sun.management.ThreadMXBean;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import java.lang.management.ManagementFactory;
import java.util.function.IntToLongFunction;

/**
 * Graphs of 100 launches of a kernel that does nothing, as the anchors' programs have them: the
 * launch of a graph until the call returns and until the graph has run, capture and instantiation,
 * updates; then plain launches in a stream that captured before. Their time, and the heap that they
 * take. Single-threaded.
 */
final class GraphWork {
  /** So many turns in each repetition measure a GPU. */
  static final int TURNS = 50;

  private static final int REPETITIONS = 40;
  private static final String OF_A_GRAPH = "Graph";
  private static final String OF_A_LAUNCH = "Launch";

  private final Cuda cuda;
  private final Lines lines;
  private final long warmUpNanos;
  private final int turns;
  private final ThreadMXBean heap = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  /** The heap that the last turn took in what counts of it. */
  private long bytes;

  GraphWork(Cuda cuda, Lines lines, long warmUpNanos, int turns) {
    this.cuda = cuda;
    this.lines = lines;
    this.warmUpNanos = warmUpNanos;
    this.turns = turns;
  }

  void run() {
    try (ManyLaunches launches = new ManyLaunches(cuda);
        CudaGraph graph = launches.capture(1);
        CudaGraph other = launches.capture(2);
        CudaGraphExec executable = graph.instantiate()) {
      // first what a cold launch matters little to: each warms up the next
      measure("graph-launch+synchronize", OF_A_GRAPH, 1, _ -> launchAndWait(launches, executable));
      measure("graph-launch", OF_A_GRAPH, 1, _ -> launch(launches, executable));
      measure("graph-capture+instantiate", OF_A_GRAPH, 1, _ -> captureAndInstantiate(launches));
      measure("graph-capture", OF_A_GRAPH, 1, _ -> capture(launches));
      measure(
          "graph-update", OF_A_GRAPH, 1, turn -> update(executable, turn % 2 == 0 ? other : graph));
      measure("launch-after-capture", OF_A_LAUNCH, ManyLaunches.COUNT, _ -> plain(launches));
    }
  }

  private long launch(ManyLaunches launches, CudaGraphExec executable) {
    long before = start();
    executable.launch(launches.stream);
    long nanos = end(before);
    launches.stream.synchronize();
    return nanos;
  }

  private long launchAndWait(ManyLaunches launches, CudaGraphExec executable) {
    long before = start();
    executable.launch(launches.stream);
    launches.stream.synchronize();
    return end(before);
  }

  private long captureAndInstantiate(ManyLaunches launches) {
    long before = start();
    CudaGraph graph = launches.capture(1);
    CudaGraphExec executable = graph.instantiate();
    long nanos = end(before);
    executable.close();
    graph.close();
    return nanos;
  }

  private long capture(ManyLaunches launches) {
    long before = start();
    CudaGraph graph = launches.capture(1);
    long nanos = end(before);
    graph.close();
    return nanos;
  }

  private long update(CudaGraphExec executable, CudaGraph graph) {
    long before = start();
    executable.update(graph);
    return end(before);
  }

  private long plain(ManyLaunches launches) {
    long before = start();
    launches.launch(1);
    long nanos = end(before);
    launches.stream.synchronize();
    return nanos;
  }

  private long start() {
    bytes = heap.getCurrentThreadAllocatedBytes();
    return System.nanoTime();
  }

  private long end(long start) {
    long nanos = System.nanoTime() - start;
    bytes = heap.getCurrentThreadAllocatedBytes() - bytes;
    return nanos;
  }

  /** The least time of the repetitions, and the most heap. */
  private void measure(String work, String unit, int each, IntToLongFunction turn) {
    long start = System.nanoTime();
    do {
      long _ = turn.applyAsLong(0);
    } while (System.nanoTime() - start < warmUpNanos);
    double leastNanos = Double.MAX_VALUE;
    double mostBytes = 0;
    for (int r = 0; r < REPETITIONS; r++) {
      long nanos = 0;
      long allBytes = 0;
      for (int i = 0; i < turns; i++) {
        nanos += turn.applyAsLong(i);
        allBytes += bytes;
      }
      leastNanos = Math.min(leastNanos, (double) nanos / (turns * each));
      mostBytes = Math.max(mostBytes, (double) allBytes / (turns * each));
    }
    lines.figure(work, "nsPer" + unit, leastNanos);
    lines.figure(work, "heapBytesPer" + unit, mostBytes);
  }
}

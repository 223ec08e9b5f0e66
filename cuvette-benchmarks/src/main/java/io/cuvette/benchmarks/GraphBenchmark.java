package io.cuvette.benchmarks;

import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaOptions;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Graphs of 100 launches of a kernel that does nothing, with all that is made of them: launch and
 * wait, capture, instantiation, update; and as many plain launches in the same stream, which are
 * waited for as well.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Fork(2)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class GraphBenchmark {
  private Cuda cuda;
  private ManyLaunches launches;
  private CudaGraph graph;
  private CudaGraph other;
  private CudaGraphExec executable;
  private boolean isOther;

  /** Made by JMH. */
  public GraphBenchmark() {}

  /** Captures two graphs that differ in an argument. */
  @Setup
  public void open() {
    String device = System.getProperty("cuvette.device", CudaOptions.DEFAULTS.device());
    cuda = Cuda.open(CudaOptions.DEFAULTS.withDevice(device));
    launches = new ManyLaunches(cuda);
    graph = launches.capture(1);
    other = launches.capture(2);
    executable = graph.instantiate();
  }

  /** Closes all. */
  @TearDown
  public void close() {
    executable.close();
    other.close();
    graph.close();
    launches.close();
    cuda.close();
  }

  /** Launches a graph, and waits until it has run. */
  @Benchmark
  public void launch() {
    executable.launch(launches.stream);
    launches.stream.synchronize();
  }

  /** Captures a graph and instantiates it; ends both. */
  @Benchmark
  public void captureAndInstantiate() {
    try (CudaGraph made = launches.capture(1);
        CudaGraphExec _ = made.instantiate()) {}
  }

  /** Instantiates a graph; ends the result. */
  @Benchmark
  public void instantiate() {
    graph.instantiate().close();
  }

  /** Updates an executable by two graphs in turn. */
  @Benchmark
  public void update() {
    executable.update(isOther ? graph : other);
    isOther = !isOther;
  }

  /** Launches the same kernels without a graph, and waits until they have run. */
  @Benchmark
  public void withoutGraph() {
    launches.launch(1);
    launches.stream.synchronize();
  }
}

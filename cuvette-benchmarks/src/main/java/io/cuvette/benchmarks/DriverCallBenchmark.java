package io.cuvette.benchmarks;

import io.cuvette.CudaEvent;
import io.cuvette.MemoryResource;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** What single calls of the driver cost through the public API and through the seam. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(2)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class DriverCallBenchmark {
  private static final int MIB = 1 << 20;

  /** Made by JMH. */
  public DriverCallBenchmark() {}

  /** An event that has been recorded and is done. */
  @State(Scope.Benchmark)
  public static class Events {
    CudaEvent event;

    /** Made by JMH. */
    public Events() {}

    /** Makes the event. */
    @Setup(Level.Trial)
    public void open(PoolState state) {
      event = state.cuda.device(0).createEvent();
      event.record(state.stream);
      state.stream.synchronize();
    }

    /** Closes it. */
    @TearDown(Level.Trial)
    public void close() {
      event.close();
    }
  }

  /** The cheapest call there is: cuDriverGetVersion, through the seam. */
  @Benchmark
  public int driverGetVersion(PoolState state) {
    return state.cuda.driver().devices().driverGetVersion();
  }

  /** cuStreamQuery of an idle stream. */
  @Benchmark
  public boolean streamQuery(PoolState state) {
    return state.stream.isDone();
  }

  /** cuEventQuery of an event that is done. */
  @Benchmark
  public boolean eventQuery(Events events) {
    return events.event.isDone();
  }

  /** cuEventRecord. */
  @Benchmark
  public void eventRecord(PoolState state, Events events) {
    events.event.record(state.stream);
  }

  /** cuMemAlloc and cuMemFree of 1 MiB, without a pool. */
  @Benchmark
  public void memAllocAndFree(PoolState state) {
    MemoryResource.direct().allocate(MIB, state.stream).close();
  }
}

package io.cuvette.benchmarks;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.KernelArguments;
import io.cuvette.LaunchConfig;
import io.cuvette.StreamOptions;
import io.cuvette.sim.SimulatedKernels;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Launches of a kernel with four parameters that does nothing: with arguments packed for each
 * launch, and packed before. The stream is waited for after each series, which is not measured.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(2)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class LaunchBenchmark {
  /** Fewer than fill the queue of the driver, which would make launches wait for the device. */
  private static final int SERIES = 256;

  private Cuda cuda;
  private CudaStream stream;
  private CudaModule module;
  private CudaKernel kernel;
  private Buffer first;
  private Buffer second;
  private KernelArguments packed;
  private LaunchConfig config;
  private SimulatedKernels.@Nullable Registered registered;

  /** Made by JMH. */
  public LaunchBenchmark() {}

  /** Loads the kernel, whose PTX is empty. */
  @Setup
  public void open() {
    // From the property: Main may have set it after the defaults were made.
    String device = System.getProperty("cuvette.device", CudaOptions.DEFAULTS.device());
    cuda = Cuda.open(CudaOptions.DEFAULTS.withDevice(device));
    if (cuda.isSimulated()) {
      registered = SimulatedKernels.register(NothingOfFour.TWIN);
    }
    stream = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING);
    module = CudaModule.load(cuda, NothingOfFour.ptx());
    kernel = module.kernel(NothingOfFour.TWIN.name());
    first = cuda.allocate(1024, stream);
    second = cuda.allocate(1024, stream);
    packed = kernel.pack(first, second, 1f, 256);
    config = LaunchConfig.of(1, 32);
  }

  /** Waits for the launches of a series. */
  @TearDown(Level.Invocation)
  public void await() {
    stream.synchronize();
  }

  /** Closes all. */
  @TearDown
  public void close() {
    first.close();
    second.close();
    module.close();
    stream.close();
    cuda.close();
    if (registered != null) {
      registered.close();
    }
  }

  /** Packs the arguments for each launch. */
  @Benchmark
  @OperationsPerInvocation(SERIES)
  public void single() {
    for (int i = 0; i < SERIES; i++) {
      stream.launch(kernel, config, first, second, 1f, 256);
    }
  }

  /** Launches with arguments that were packed once. */
  @Benchmark
  @OperationsPerInvocation(SERIES)
  public void packed() {
    for (int i = 0; i < SERIES; i++) {
      packed.launch(stream, config);
    }
  }
}

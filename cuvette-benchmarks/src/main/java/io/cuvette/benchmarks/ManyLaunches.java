package io.cuvette.benchmarks;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.LaunchConfig;
import io.cuvette.StreamOptions;
import io.cuvette.sim.SimulatedKernels;

/** 100 launches of the kernel that does nothing, and what they need. For one thread. */
final class ManyLaunches implements AutoCloseable {
  static final int COUNT = 100;
  private static final int BYTES = 1024;

  final CudaStream stream;
  private final SimulatedKernels.Registered registered;
  private final CudaModule module;
  private final CudaKernel kernel;
  private final LaunchConfig config = LaunchConfig.of(1, 32);
  private final Buffer x;
  private final Buffer y;

  ManyLaunches(Cuda cuda) {
    registered = SimulatedKernels.register(NothingOfFour.TWIN);
    stream = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING);
    module = CudaModule.load(cuda, NothingOfFour.ptx());
    kernel = module.kernel(NothingOfFour.TWIN.name());
    x = cuda.allocate(BYTES, stream);
    y = cuda.allocate(BYTES, stream);
  }

  /** Launches the kernel so often, with a number among its arguments. */
  void launch(int number) {
    for (int i = 0; i < COUNT; i++) {
      stream.launch(kernel, config, x, y, 1f, number);
    }
  }

  /** Captures the launches. */
  CudaGraph capture(int number) {
    return stream.capture(() -> launch(number));
  }

  @Override
  public void close() {
    x.close();
    y.close();
    module.close();
    stream.close();
    registered.close();
  }
}

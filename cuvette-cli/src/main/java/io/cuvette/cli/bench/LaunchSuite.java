package io.cuvette.cli.bench;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.KernelArguments;
import io.cuvette.LaunchConfig;
import io.cuvette.StreamOptions;
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.sim.SimulatedKernels;
import io.cuvette.sim.SimulatedParameter;
import java.nio.charset.StandardCharsets;

/**
 * Launches of a kernel with four parameters that does nothing, on one thread: with arguments packed
 * for each launch, and packed once; and graphs of such launches. Stateless.
 */
final class LaunchSuite {
  /** Fewer than fill the queue of the driver, which would make launches wait for the device. */
  private static final int SERIES = 256;

  private static final int WANTED = 100 * SERIES;
  private static final int BYTES = 1024;

  private static final SimulatedKernel NOTHING =
      SimulatedKernel.of(
          "nothingOfFour",
          _ -> {},
          SimulatedParameter.POINTER,
          SimulatedParameter.POINTER,
          SimulatedParameter.FLOAT,
          SimulatedParameter.INT);

  /** Code for every device since 2018, in which there is nothing. */
  private static final String PTX =
      """
      .version 8.0
      .target sm_75
      .address_size 64
      .visible .entry nothingOfFour(.param .u64 x, .param .u64 y, .param .f32 factor, .param .u32 count)
      {
        ret;
      }
      """;

  private LaunchSuite() {}

  static void run(Cuda cuda, Figures figures) {
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(NOTHING);
        CudaStream stream = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING);
        CudaModule module = CudaModule.load(cuda, PTX.getBytes(StandardCharsets.US_ASCII));
        Buffer x = cuda.allocate(BYTES, stream);
        Buffer y = cuda.allocate(BYTES, stream)) {
      CudaKernel kernel = module.kernel(NOTHING.name());
      LaunchConfig config = LaunchConfig.of(1, 32);
      KernelArguments packed = kernel.pack(x, y, 1f, BYTES / Float.BYTES);
      Best best = figures.best();
      figures.launch(
          "launch",
          best.nanosOfSeries(
              WANTED, SERIES, n -> single(kernel, config, x, y, stream, n), stream::synchronize),
          "C + 200 ns, 0.5 x cuda.core");
      figures.launch(
          "launch-packed",
          best.nanosOfSeries(
              WANTED, SERIES, n -> packed(packed, config, stream, n), stream::synchronize),
          "C + 50 ns");
      new GraphSuite(kernel, config, stream, x, y).run(figures);
    }
  }

  private static void single(
      CudaKernel kernel, LaunchConfig config, Buffer x, Buffer y, CudaStream stream, int turns) {
    for (int i = 0; i < turns; i++) {
      stream.launch(kernel, config, x, y, 1f, BYTES / Float.BYTES);
    }
  }

  private static void packed(
      KernelArguments arguments, LaunchConfig config, CudaStream stream, int turns) {
    for (int i = 0; i < turns; i++) {
      arguments.launch(stream, config);
    }
  }
}

package io.cuvette.benchmarks;

import com.sun.management.ThreadMXBean;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.KernelArguments;
import io.cuvette.LaunchConfig;
import io.cuvette.StreamOptions;
import io.cuvette.sim.SimulatedKernels;
import java.lang.management.ManagementFactory;

/**
 * Launches of a kernel with four parameters that does nothing, with arguments packed for each
 * launch and packed once: their time, and the heap that they take. The stream is waited for after
 * each series, which is not timed. Single-threaded.
 */
final class LaunchWork {
  /** Fewer than fill the queue of the driver, which would make launches wait for the device. */
  private static final int SERIES = 256;

  /** So many series in each repetition measure a GPU. */
  static final int SERIES_A_REPETITION = 100;

  private static final int WARM_UPS = 6;
  private static final int REPETITIONS = 6;
  private static final int BYTES = 1024;
  private static final int COUNT = BYTES / Float.BYTES;

  private final Cuda cuda;
  private final Lines lines;
  private final int seriesARepetition;
  private final ThreadMXBean heap = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  LaunchWork(Cuda cuda, Lines lines, int seriesARepetition) {
    this.cuda = cuda;
    this.lines = lines;
    this.seriesARepetition = seriesARepetition;
  }

  /** Launches a kernel so often; written out for each way, so that only its body is timed. */
  @FunctionalInterface
  private interface Series {
    void run(int launches);
  }

  void run() {
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(NothingOfFour.TWIN);
        CudaStream stream = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING);
        CudaModule module = CudaModule.load(cuda, NothingOfFour.ptx());
        Buffer x = cuda.allocate(BYTES, stream);
        Buffer y = cuda.allocate(BYTES, stream)) {
      CudaKernel kernel = module.kernel(NothingOfFour.TWIN.name());
      LaunchConfig config = LaunchConfig.of(1, 32);
      KernelArguments arguments = kernel.pack(x, y, 1f, COUNT);
      measure("launch", stream, launches -> single(kernel, config, x, y, stream, launches));
      measure("launch-packed", stream, launches -> packed(arguments, config, stream, launches));
    }
  }

  private static void single(
      CudaKernel kernel, LaunchConfig config, Buffer x, Buffer y, CudaStream stream, int launches) {
    for (int i = 0; i < launches; i++) {
      stream.launch(kernel, config, x, y, 1f, COUNT);
    }
  }

  private static void packed(
      KernelArguments arguments, LaunchConfig config, CudaStream stream, int launches) {
    for (int i = 0; i < launches; i++) {
      arguments.launch(stream, config);
    }
  }

  /** The least time of the repetitions, and the most heap. */
  private void measure(String work, CudaStream stream, Series series) {
    double leastNanos = Double.MAX_VALUE;
    double mostBytes = 0;
    for (int r = -WARM_UPS; r < REPETITIONS; r++) {
      long nanos = 0;
      long bytes = 0;
      for (int i = 0; i < seriesARepetition; i++) {
        long bytesBefore = heap.getCurrentThreadAllocatedBytes();
        long before = System.nanoTime();
        series.run(SERIES);
        nanos += System.nanoTime() - before;
        bytes += heap.getCurrentThreadAllocatedBytes() - bytesBefore;
        stream.synchronize();
      }
      if (r >= 0) {
        leastNanos = Math.min(leastNanos, (double) nanos / (SERIES * seriesARepetition));
        mostBytes = Math.max(mostBytes, (double) bytes / (SERIES * seriesARepetition));
      }
    }
    lines.figure(work, "nsPerLaunch", leastNanos);
    lines.figure(work, "heapBytesPerLaunch", mostBytes);
  }
}

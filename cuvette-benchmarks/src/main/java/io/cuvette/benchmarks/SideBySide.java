package io.cuvette.benchmarks;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.driver.CudaException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ExecutionException;

/**
 * Cuvette's part of the comparison with the anchors: {@code pools}, {@code ordered}, {@code
 * driver}, {@code launches}, {@code graphs}, or {@code replay TRACE.bin…}. Runs on the device that
 * {@code -Dcuvette.device} or {@code CUVETTE_DEVICE} names, the GPU by default; on the simulated
 * device the figures bear another name. Stateless.
 */
final class SideBySide {
  /** So long is each step with a graph repeated before it is timed. */
  private static final long WARM_UP_NANOS = 1_000_000_000;

  private SideBySide() {}

  /** Measures, or reports in one line why it cannot; true if it measured. */
  static boolean run(List<String> arguments)
      throws IOException, InterruptedException, ExecutionException {
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS)) {
      Lines lines = new Lines(cuda.isSimulated() ? "cuvette-simulated" : "cuvette");
      lines.about(about(cuda));
      switch (arguments.isEmpty() ? "" : arguments.getFirst()) {
        case "pools" -> {
          new PoolWork(cuda, lines).run();
          new StreamOrderedWork(cuda, lines).run();
          new ThreadWork(cuda, lines).run();
        }
        case "ordered" -> new StreamOrderedWork(cuda, lines).run();
        case "driver" -> new DriverWork(cuda, lines).run();
        case "launches" -> new LaunchWork(cuda, lines, LaunchWork.SERIES_A_REPETITION).run();
        case "graphs" -> new GraphWork(cuda, lines, WARM_UP_NANOS, GraphWork.TURNS).run();
        case "replay" -> {
          for (String file : arguments.subList(1, arguments.size())) {
            new ReplayWork(cuda, lines).run(new BinaryTrace(Path.of(file)));
          }
        }
        default ->
            throw new IllegalArgumentException(
                "arguments: "
                    + arguments
                    + " (expected: pools, ordered, driver, launches, graphs, or replay FILE...)");
      }
      return true;
    } catch (CudaException e) {
      new Lines("cuvette").missing(String.valueOf(e.getMessage()));
      return false;
    }
  }

  private static String about(Cuda cuda) {
    String device = cuda.isSimulated() ? "the simulated device" : cuda.currentDevice().name();
    return "JDK " + Runtime.version() + ", " + device + ", CUDA " + cuda.driverVersion();
  }
}

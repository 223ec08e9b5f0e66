package io.cuvette.cli.bench;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;

/**
 * Calls of the driver and pinned copies through the library. Each loop is written out, so that none
 * shares a call through an interface with another. Stateless.
 */
final class DriverSuite {
  private static final int MIB = 1 << 20;
  private static final long COPY_BYTES = 256L * MIB;

  /** The simulator really moves the bytes, and on the heap. */
  private static final long SIMULATED_COPY_BYTES = 16L * MIB;

  private DriverSuite() {}

  static void run(Cuda cuda, Figures figures) {
    try (CudaStream stream = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING);
        CudaEvent event = cuda.currentDevice().createEvent()) {
      CudaDriver driver = cuda.driver();
      Best best = figures.best();
      figures.call("call-cuDriverGetVersion", best.nanos(500_000, n -> version(driver, n)));
      figures.call("call-cuStreamQuery", best.nanos(100_000, n -> query(stream, n)));
      figures.call("call-cuEventRecord", best.nanos(20_000, n -> record(event, stream, n)));
      stream.synchronize();
      figures.call("call-cuEventQuery", best.nanos(100_000, n -> query(event, n)));
      figures.call("call-cuMemAlloc+cuMemFree-1MiB", best.nanos(200, n -> direct(stream, n)));
      copies(cuda, stream, figures);
    }
  }

  private static void version(CudaDriver driver, int turns) {
    for (int i = 0; i < turns; i++) {
      driver.devices().driverGetVersion();
    }
  }

  private static void query(CudaStream stream, int turns) {
    for (int i = 0; i < turns; i++) {
      stream.isDone();
    }
  }

  private static void record(CudaEvent event, CudaStream stream, int turns) {
    for (int i = 0; i < turns; i++) {
      event.record(stream);
    }
  }

  private static void query(CudaEvent event, int turns) {
    for (int i = 0; i < turns; i++) {
      event.isDone();
    }
  }

  private static void direct(CudaStream stream, int turns) {
    MemoryResource resource = MemoryResource.direct();
    for (int i = 0; i < turns; i++) {
      resource.allocate(MIB, stream).close();
    }
  }

  private static void copies(Cuda cuda, CudaStream stream, Figures figures) {
    long bytes = cuda.isSimulated() ? SIMULATED_COPY_BYTES : COPY_BYTES;
    Best best = figures.best();
    String size = bytes / MIB + "MiB";
    try (PinnedBuffer host = cuda.allocatePinned(bytes);
        Buffer device = cuda.allocate(bytes, stream)) {
      double in =
          best.nanos(
              1,
              turns -> {
                device.copyFrom(host, stream);
                stream.synchronize();
              });
      double back =
          best.nanos(
              1,
              turns -> {
                device.copyTo(host, stream);
                stream.synchronize();
              });
      figures.copy("copy-pinned-h2d-" + size, bytes / in);
      figures.copy("copy-pinned-d2h-" + size, bytes / back);
    }
  }
}

package io.cuvette.benchmarks;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;

/**
 * Driver calls through the public API: the same work as the C programs. Each loop is written out,
 * so that none shares a call through an interface with another. Single-threaded.
 */
final class DriverWork {
  private static final int MIB = 1 << 20;
  private static final int SMALL_COPY_BYTES = 4096;

  /** Small copies between two waits: fewer than the driver queues before a call blocks. */
  private static final int SMALL_COPIES = 256;

  private final Cuda cuda;
  private final Lines lines;

  DriverWork(Cuda cuda, Lines lines) {
    this.cuda = cuda;
    this.lines = lines;
  }

  void run() {
    try (CudaStream stream = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING)) {
      calls(stream);
      memAlloc(stream);
      smallCopies(stream);
    }
  }

  private void calls(CudaStream stream) {
    call("call-cuDriverGetVersion", 2_000_000, turns -> driverGetVersion(cuda.driver(), turns));
    try (CudaEvent event = cuda.currentDevice().createEvent()) {
      call("call-cuStreamQuery", 500_000, turns -> streamQuery(stream, turns));
      call("call-cuEventRecord", 100_000, turns -> eventRecord(event, stream, turns));
      stream.synchronize();
      call("call-cuEventQuery", 500_000, turns -> eventQuery(event, turns));
    }
  }

  private static void driverGetVersion(CudaDriver driver, int turns) {
    for (int i = 0; i < turns; i++) {
      driver.devices().driverGetVersion();
    }
  }

  private static void streamQuery(CudaStream stream, int turns) {
    for (int i = 0; i < turns; i++) {
      stream.isDone();
    }
  }

  private static void eventRecord(CudaEvent event, CudaStream stream, int turns) {
    for (int i = 0; i < turns; i++) {
      event.record(stream);
    }
  }

  private static void eventQuery(CudaEvent event, int turns) {
    for (int i = 0; i < turns; i++) {
      event.isDone();
    }
  }

  private void memAlloc(CudaStream stream) {
    MemoryResource direct = MemoryResource.direct();
    call(
        "call-cuMemAlloc+cuMemFree-1MiB",
        1_000,
        turns -> {
          for (int i = 0; i < turns; i++) {
            direct.allocate(MIB, stream).close();
          }
        });
  }

  private void smallCopies(CudaStream stream) {
    try (PinnedBuffer host = cuda.allocatePinned(SMALL_COPY_BYTES);
        Buffer device = cuda.allocate(SMALL_COPY_BYTES, stream)) {
      call(
          "call-cuMemcpyAsync-4KiB",
          100 * SMALL_COPIES,
          turns -> {
            for (int done = 0; done < turns; done += SMALL_COPIES) {
              for (int i = 0; i < SMALL_COPIES; i++) {
                device.copyFrom(host, stream);
              }
              stream.synchronize();
            }
          });
    }
  }

  private void call(String work, int turns, BestOf.Loop loop) {
    lines.figure(work, "nsPerCall", BestOf.nanosPerTurn(turns, 6, loop));
  }
}

package io.cuvette.benchmarks;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;

/** The driver's pools, one thread: the same work as the anchors' programs. Single-threaded. */
final class StreamOrderedWork {
  private static final int MIB = 1 << 20;

  private final Cuda cuda;
  private final Lines lines;

  StreamOrderedWork(Cuda cuda, Lines lines) {
    this.cuda = cuda;
    this.lines = lines;
  }

  void run() {
    try (CudaStream stream = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING)) {
      device(stream);
      pinned(stream);
    }
  }

  private void device(CudaStream stream) {
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0))) {
      pairs("async-1MiB", pool, stream);
    }
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda)) {
      pairs("async-default-1MiB", pool, stream);
    }
    try (DeviceMemoryResource resource =
        new DeviceMemoryResource(cuda.currentDevice(), DeviceMemoryResourceOptions.DEFAULTS)) {
      pairs("device-resource-1MiB", resource, stream);
    }
  }

  private void pinned(CudaStream stream) {
    try (PinnedMemoryResource resource = new PinnedMemoryResource(cuda)) {
      pairs("pinned-resource-1MiB", resource, stream);
    } catch (CudaException e) {
      lines.missing("pinned-resource-1MiB: " + e.getMessage());
    }
    try (PinnedMemoryResource resource =
        new PinnedMemoryResource(cuda, PinnedMemoryResourceOptions.DEFAULTS.withNumaId(0))) {
      pairs("pinned-resource-numa-1MiB", resource, stream);
    } catch (CudaException e) {
      lines.missing("pinned-resource-numa-1MiB: " + e.getMessage());
    }
  }

  private void pairs(String work, MemoryResource from, CudaStream stream) {
    double nanos =
        BestOf.nanosPerTurn(
            100_000,
            5,
            turns -> {
              for (int i = 0; i < turns; i++) {
                from.allocate(MIB, stream).close();
              }
            });
    lines.figure(work, "nsPerPair", nanos);
  }
}

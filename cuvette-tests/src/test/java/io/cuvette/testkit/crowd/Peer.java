package io.cuvette.testkit.crowd;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaOptions;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.EventOptions;
import io.cuvette.MemoryResource;

/** Stands for another process, which shares memory and an event with a crowd. Thread-safe. */
final class Peer implements AutoCloseable {
  private final Cuda cuda = Cuda.open(CudaOptions.simulated());

  final DeviceMemoryResource pool =
      new DeviceMemoryResource(
          cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(true));
  final ElasticMemoryPool elastic =
      new ElasticMemoryPool(cuda, ElasticPoolOptions.DEFAULTS.withExportable(true));
  final CudaEvent event =
      cuda.device(0).createEvent(EventOptions.ORDER_ONLY.withInterprocess(true));

  Peer() {
    event.record();
  }

  Buffer plain(long bytes) {
    return MemoryResource.direct().allocate(bytes, cuda.device(0).nullStream());
  }

  /** Ends it: nobody uses what it shares any more. */
  @Override
  public void close() {
    cuda.close();
  }
}

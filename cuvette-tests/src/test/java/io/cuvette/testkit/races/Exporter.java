package io.cuvette.testkit.races;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaOptions;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.MemoryResource;
import io.cuvette.PageHandles;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;

/** Stands for another process, which shares what all rounds import. Thread-safe. */
final class Exporter {
  /** Opened when it is first needed, and never closed: it is simulated. */
  static final Exporter ONE = new Exporter();

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());

  final DeviceMemoryResource device =
      new DeviceMemoryResource(
          cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(true));
  final PinnedMemoryResource pinned =
      new PinnedMemoryResource(cuda, PinnedMemoryResourceOptions.DEFAULTS.withIpcEnabled(true));
  final Buffer deviceBuffer = device.allocate(Stage.BYTES);
  final PinnedBuffer pinnedBuffer = pinned.allocate(Stage.BYTES);
  final Buffer plain = MemoryResource.direct().allocate(Stage.BYTES, cuda.currentStream());
  final ElasticMemoryPool elastic =
      new ElasticMemoryPool(cuda, ElasticPoolOptions.DEFAULTS.withExportable(true));
  final Buffer elasticBuffer = elastic.allocate(Stage.BYTES);
  final CudaEvent event = cuda.device(0).createEvent(BufferOperations.interprocess());

  PageHandles pages() {
    return elastic.export(elasticBuffer);
  }

  private Exporter() {
    event.record();
    cuda.device(0).synchronize();
  }
}

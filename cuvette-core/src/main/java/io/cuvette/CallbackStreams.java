package io.cuvette;

import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * The streams that are current inside callbacks, one for each device: the null stream would wait
 * for the stream that the callback holds. They end with the Cuda. Thread-safe.
 */
final class CallbackStreams {
  private final AtomicReferenceArray<@Nullable CudaStream> made;

  CallbackStreams(Cuda cuda) {
    this.made = new AtomicReferenceArray<>(cuda.devices().size());
  }

  CudaStream of(CudaDevice device) {
    CudaStream stream = made.get(device.id());
    if (stream == null) {
      CudaStream other = CudaStream.ofLibrary(device);
      stream = made.compareAndExchange(device.id(), null, other);
      if (stream == null) {
        return other;
      }
      other.close();
    }
    return stream;
  }
}

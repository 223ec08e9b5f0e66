package io.cuvette;

import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * The streams that are current inside callbacks, one for each device: the null stream would wait
 * for the stream that the callback holds. They end with the Cuda. Thread-safe.
 */
final class CallbackStreams {
  private final Cuda cuda;
  private final AtomicReferenceArray<@Nullable CudaStream> made;

  CallbackStreams(Cuda cuda) {
    this.cuda = cuda;
    this.made = new AtomicReferenceArray<>(cuda.devices().size());
  }

  /** Urgent, which on a device also keeps it apart from the queues that most others share. */
  CudaStream of(CudaDevice device) {
    CudaStream stream = made.get(device.id());
    if (stream == null) {
      StreamOptions options =
          StreamOptions.NON_BLOCKING.withPriority(device.priorityRange().greatest());
      CudaStream other = CudaStream.create(device, options);
      cuda.leaks().closed(other.state.lifetime());
      stream = made.compareAndExchange(device.id(), null, other);
      if (stream == null) {
        return other;
      }
      other.close();
    }
    return stream;
  }
}

package io.cuvette;

import io.cuvette.internal.base.PerThread;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.stream.Streams;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * The streams that are kept for threads: the per-thread default streams, and those that are current
 * inside callbacks, one for each device: the null stream would wait for the stream that a callback
 * holds. These end with the Cuda. Thread-safe.
 */
final class ThreadStreams {
  private final Streams streams;
  private final PerThread<@Nullable CudaStream[]> perThread;
  private final AtomicReferenceArray<@Nullable CudaStream> insideCallbacks;

  ThreadStreams(Streams streams) {
    int devices = streams.session().devices().size();
    this.streams = streams;
    this.perThread = new PerThread<>(() -> new CudaStream[devices]);
    this.insideCallbacks = new AtomicReferenceArray<>(devices);
  }

  /**
   * The default stream of this thread.
   *
   * @throws WrongThreadException on a virtual thread
   */
  CudaStream perThread(CudaDevice device) {
    streams.session().checkOpen();
    Thread thread = Thread.currentThread();
    if (thread.isVirtual()) {
      throw new WrongThreadException(
          "the per-thread default stream belongs to an OS thread, which %s does not have (expected: a platform thread, "
                  .formatted(thread)
              + "or a stream of createStream())");
    }
    @Nullable CudaStream[] mine = perThread.get();
    CudaStream stream = mine[device.id()];
    if (stream == null) {
      stream =
          new CudaStream(device, new OpenStream(streams.perThread(device.core()), false), null);
      mine[device.id()] = stream;
    }
    return stream;
  }

  /** The stream that is current inside callbacks. */
  CudaStream insideCallbacks(CudaDevice device) {
    CudaStream stream = insideCallbacks.get(device.id());
    if (stream == null) {
      CudaStream other = CudaStream.ofLibrary(device);
      stream = insideCallbacks.compareAndExchange(device.id(), null, other);
      if (stream == null) {
        return other;
      }
      other.close();
    }
    return stream;
  }

  /** Lets go of those of all threads, which live longer than the Cuda. */
  void close() {
    perThread.close();
  }
}

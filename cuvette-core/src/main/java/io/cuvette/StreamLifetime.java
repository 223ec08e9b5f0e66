package io.cuvette;

import java.lang.ref.ReferenceQueue;
import org.jspecify.annotations.Nullable;

/** The end of a stream that this library made. */
final class StreamLifetime extends Lifetime {
  private final StreamState state;

  /** The same object each time, to be found again among the children. */
  private final Runnable end;

  private StreamLifetime(
      CudaStream stream, @Nullable ReferenceQueue<Object> queue, @Nullable Throwable site) {
    super(stream, queue, site);
    this.state = stream.state;
    this.end = this::destroy;
  }

  static StreamLifetime of(CudaStream stream, Cuda cuda) {
    StreamLifetime lifetime = new StreamLifetime(stream, cuda.leaks().queue, cuda.leaks().site());
    cuda.owned().children().add(lifetime.end);
    return lifetime;
  }

  @Override
  String describe() {
    return state.toString();
  }

  @Override
  void release() {
    state.cuda.owned().entrance().run(this::destroy);
  }

  private void destroy() {
    state.close();
    state.cuda.owned().children().remove(end);
  }
}

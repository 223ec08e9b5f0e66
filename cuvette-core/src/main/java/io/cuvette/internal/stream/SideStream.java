package io.cuvette.internal.stream;

import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * A stream of the library beside one that somebody may begin to capture at any moment. What is
 * queued here becomes a part of no graph. It is made when it is first asked for, and ends with the
 * other. Thread-safe.
 */
public final class SideStream {
  private final StreamState beside;
  private final AtomicReference<@Nullable OpenStream> made = new AtomicReference<>();

  public SideStream(StreamState beside) {
    this.beside = beside;
  }

  /** The stream, for who holds the other. */
  public StreamState get() {
    OpenStream stream = made.get();
    if (stream == null) {
      OpenStream other = beside.streams.createForLibrary(beside.device);
      stream = made.compareAndExchange(null, other);
      if (stream == null) {
        return other.state;
      }
      other.close();
    }
    return stream.state;
  }

  public void close() {
    OpenStream stream = made.getAndSet(null);
    if (stream != null) {
      stream.close();
    }
  }
}

package io.cuvette.internal.stream;

import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * A stream of the library beside one that somebody may begin to capture at any moment. What is
 * queued here becomes a part of no graph. It is made when first needed, and ends with the other.
 * Thread-safe.
 */
public final class SideStream {
  private final DriverStream beside;
  private final AtomicReference<@Nullable DriverStream> made = new AtomicReference<>();

  public SideStream(DriverStream beside) {
    this.beside = beside;
  }

  /** The stream, for who holds the other. */
  public DriverStream get() {
    DriverStream stream = made.get();
    if (stream == null) {
      DriverStream other = beside.streams.createForLibrary(beside.device, state -> state);
      stream = made.compareAndExchange(null, other);
      if (stream == null) {
        return other;
      }
      other.ending().close(other);
    }
    return stream;
  }

  public void close() {
    DriverStream stream = made.getAndSet(null);
    if (stream != null) {
      stream.ending().close(stream);
    }
  }
}

package io.cuvette.internal.stream;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.UserObject;
import io.cuvette.internal.lifetime.Fence;
import io.cuvette.internal.session.Device;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * What one capture may use of memory: it is done when the graph, everything instantiated from it,
 * and all launches of that are gone, or the capture failed. Thread-safe.
 */
public final class Capture implements Fence {
  public final long id;

  /** What the graph retains; null if the driver refused. */
  private final @Nullable UserObject object;

  private final @Nullable CudaException refusal;

  /** What stands for the capture where pools expect a stream. */
  private final ConcurrentHashMap<Device, StreamState> states = new ConcurrentHashMap<>();

  /** What was to be for a capture cannot be any more: its graph is gone. */
  public static final class EndedException extends IllegalStateException {
    private static final long serialVersionUID = 1;

    public EndedException(StreamState stream) {
      super("the capture of %s has ended, and its graph is gone".formatted(stream));
    }
  }

  public Capture(long id, @Nullable UserObject object, @Nullable CudaException refusal) {
    this.id = id;
    this.object = object;
    this.refusal = refusal;
  }

  @Override
  public boolean isDone() {
    return object != null && object.isDestroyed();
  }

  /** Nobody knows when somebody destroys a graph. */
  @Override
  public void await() {}

  /**
   * Checks that the end of the graph will be known.
   *
   * @param call what would use memory that nobody could use again
   */
  public Capture checked(String call, StreamState stream) {
    if (refusal != null) {
      throw new IllegalStateException(
          ("%s: %s is capturing a graph, and the driver does not tell when that is gone"
                  + " (expected: memory that is used outside of captures)")
              .formatted(call, stream),
          refusal);
    }
    return this;
  }

  /**
   * A stream of its own as far as pools are concerned: memory that the capturing stream has used
   * before is not for the graph, which can run in another stream beside that use.
   */
  public StreamState stateLike(StreamState stream) {
    return states.computeIfAbsent(stream.device, _ -> StreamState.ofCapture(stream, this));
  }

  /** Hands the memory on that nobody took; once the capture is done. */
  public void end() {
    states.values().forEach(StreamState::retireArenas);
  }
}

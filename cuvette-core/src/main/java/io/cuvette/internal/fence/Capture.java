package io.cuvette.internal.fence;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.UserObject;
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

  /** What was to be for a capture cannot be any more: its graph is gone. */
  public static final class EndedException extends IllegalStateException {
    private static final long serialVersionUID = 1;

    public EndedException(Object stream) {
      super("the capture of %s has ended, and its graph is gone".formatted(stream));
    }
  }

  public Capture(long id, @Nullable UserObject object, @Nullable CudaException refusal) {
    this.id = id;
    this.object = object;
    this.refusal = refusal;
  }

  /** Whether a question about an event, or a wait for it, failed because a graph has the record. */
  public static boolean hasTheRecord(CudaException e) {
    return e.status() == CudaStatus.CAPTURED_EVENT // of a capture that goes on, else
        || e.status() == CudaStatus.INVALID_VALUE;
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
  public Capture checked(String call, Object stream) {
    if (refusal != null) {
      throw new IllegalStateException(
          ("%s: %s is capturing a graph, and the driver does not tell when that is gone"
                  + " (expected: memory that is used outside of captures)")
              .formatted(call, stream),
          refusal);
    }
    return this;
  }
}

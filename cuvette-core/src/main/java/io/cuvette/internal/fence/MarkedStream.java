package io.cuvette.internal.fence;

import io.cuvette.driver.CudaException;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A stream of the driver as far as the end of its work is concerned, which {@link WorkMarker}s
 * mark, and which it knows itself once it is closed. Thread-safe.
 */
public abstract class MarkedStream {
  /** Whether it is certainly idle; begun for streams of this library alone. */
  public final Calm calm = new Calm();

  public final Session session;
  public final Device device;
  public final long handle;

  /** Whether it has ended: {@link #lastWork} represents its work from then on. */
  private volatile boolean closed;

  /** Once closed: when its last work is done; null if it was done then. */
  private volatile @Nullable WorkMarker lastWork;

  public MarkedStream(Device device, long handle) {
    this.session = device.session();
    this.device = device;
    this.handle = handle;
  }

  /**
   * Asks the driver about this stream if that does no harm: the stream cannot be destroyed
   * meanwhile, this thread may use it, and it is not capturing, which a question would spoil. False
   * if it does.
   */
  public abstract boolean ask(BooleanSupplier question);

  /** Whether somebody else may have begun to capture it. */
  public abstract boolean isExposed();

  /** The same, but for captures of this library: they do not begin while it asks. */
  public abstract boolean isExposedToOthers();

  /** Asks the driver whether it is idle; false if that could harm a capture. */
  public final boolean isIdleNow() {
    return !isExposedToOthers()
        && ask(() ->
            !isExposedToOthers() && session.driver().streams().streamQuery(device.id(), handle));
  }

  /** Whether its end has begun. */
  public abstract boolean isClosing();

  /** Where this thread can mark the work: itself, or the null stream, which waits for it. */
  public abstract MarkedStream markedIn();

  /** Whether its end has come: what it knows of its last work is all there is. */
  public final boolean isClosed() {
    return closed;
  }

  public final void setClosed() {
    closed = true;
  }

  /** Takes note, before it is closed, of what marks its last work; null if that is done. */
  public final void setLastWork(@Nullable WorkMarker last) {
    lastWork = last;
  }

  public final @Nullable WorkMarker lastWork() {
    return lastWork;
  }

  public final boolean isLastWork(WorkMarker marker) {
    return marker == lastWork;
  }

  /** Once closed: whether the work queued before is done. */
  public final boolean isLastWorkDone() {
    WorkMarker last = lastWork;
    return last == null || last.isDone();
  }

  /** Once closed: waits for the work queued before. */
  public final void awaitLastWork() {
    WorkMarker last = lastWork;
    if (last != null && !last.isDone()) {
      last.await();
    }
  }

  /** Whether it is closed and its work known to be done. */
  public final boolean isOver() {
    try {
      return closed && isLastWorkDone();
    } catch (CudaException e) {
      return false; // who frees the memory will be told
    }
  }
}

package io.cuvette.internal.fence;

import io.cuvette.driver.CaptureInfo;
import org.jspecify.annotations.Nullable;

/** The captures that the library began in one stream, or had it join. Thread-safe. */
public final class OwnCapture {
  /** The capture that began here last, until it has ended. */
  private volatile @Nullable Capture begun;

  /** The capture that the stream joined last, which began in another; 0 for none. */
  private volatile long joined;

  /**
   * Whether the stream took part in a capture, of whomever, when that was last queried: then one
   * question is enough now, else two.
   */
  volatile boolean wasCaptured;

  /** A capture has begun here. */
  public void begun(Capture capture) {
    begun = capture;
  }

  /** The capture that began here and has not ended; null for none. */
  public @Nullable Capture begun() {
    return begun;
  }

  /** Whether the library began the capture that the stream takes part in. */
  public boolean isBegun(CaptureInfo info) {
    Capture capture = begun;
    return capture != null && info.isActive() && info.id() == capture.id;
  }

  /** The stream takes part in a capture that began in another. */
  public void joined(Capture capture) {
    joined = capture.id;
  }

  /** Whether the stream takes part in a capture that began in another one. */
  public boolean isJoined(CaptureInfo info) {
    return info.isActive() && info.id() == joined;
  }

  /** Whether the stream joined the capture that another one began. */
  public boolean isJoinedTo(OwnCapture other) {
    Capture capture = other.begun;
    return capture != null && capture.id == joined;
  }

  /** The capture that ends here now, if the library began it: it is not this stream's any more. */
  public @Nullable Capture taken(CaptureInfo info) {
    Capture capture = begun;
    if (capture == null || (info.isActive() && info.id() != capture.id)) {
      return null;
    }
    begun = null;
    return capture;
  }

  /** The same for one without a graph. */
  public void over(CaptureInfo info) {
    Capture capture = taken(info);
    if (capture != null) {
      capture.letGo();
    }
  }

  /** A capture is over, and there is no graph. */
  public void over() {
    Capture capture = begun;
    if (capture != null) {
      begun = null;
      capture.letGo();
    }
  }
}

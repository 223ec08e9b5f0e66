package io.cuvette.internal.stream;

import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.fence.Capture;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What one stream has to do with captures: it joins them, ends them, and refuses meanwhile what
 * would invalidate them. Thread-safe.
 */
public final class StreamCapture {
  /** The way out where a call waits, which it cannot within a graph. */
  private static final String WAITS =
      " (expected: the form that takes a stream and does not wait, or the end of the capture)";

  private final DriverStream stream;

  /** The capture that the stream joined last, which began in another; 0 for none. */
  private volatile long joined;

  /** Held by who begins or ends a capture here, and between a look at one and its graph. */
  final Lock ends = new ReentrantLock();

  /** Whether whoever closed the Cuda has ended the capture that somebody was about. */
  private volatile boolean ofClosed;

  public StreamCapture(DriverStream stream) {
    this.stream = stream;
  }

  /**
   * Makes the stream, which the caller holds, wait for what may be part of a capture: it joins it.
   */
  public void join(Runnable wait) {
    stream.exposeHeld();
    boolean captured = stream.capture() != null;
    wait.run();
    Capture capture = captured ? null : stream.capture();
    if (capture != null) {
      joined = capture.id;
    }
  }

  /** The capture that what is closed is part of, perhaps when the driver answers no more. */
  public @Nullable Capture captureAtEnd() {
    try {
      return stream.capture();
    } catch (IllegalStateException e) {
      return null;
    }
  }

  /** Does something with a capture that nobody ends meanwhile through this stream. */
  public <T> T alone(Supplier<T> step) {
    ends.lock();
    try {
      return step.get();
    } finally {
      ends.unlock();
    }
  }

  /** Whether the stream takes part in a capture that began in another one. */
  public boolean isJoined(CaptureInfo info) {
    return info.isActive() && info.id() == joined;
  }

  /**
   * Ends the capture that began here, and gives its graph up. For who holds the stream, or ends it.
   *
   * @return false if the stream still takes part in a capture
   */
  public boolean end() {
    return !stream.isExposed() || alone(() -> endAlone(false));
  }

  private boolean endAlone(boolean withCuda) {
    int device = stream.device.id();
    CudaDriver driver = stream.session.driver();
    CaptureInfo info = driver.captures().streamGetCaptureInfo(device, stream.handle);
    if (!info.isCapturing()) {
      return true;
    }
    if (isJoined(info)) {
      return false;
    }
    try {
      driver.graphs().graphDestroy(driver.captures().streamEndCapture(device, stream.handle));
      ofClosed = withCuda;
      return true;
    } catch (CudaException e) {
      return !goesOn(); // an invalid capture has ended, another thread's has not
    }
  }

  /** The same for who closes the Cuda. */
  void endAtClose() {
    if (stream.isExposed()) {
      alone(() -> endAlone(true));
    }
  }

  /** A capture begins here. */
  public void begins() {
    ofClosed = false;
  }

  /** Checks that a capture which is gone was not ended with the Cuda. */
  public void checkNotOfClosed() {
    stream.checkUsable();
    if (ofClosed) {
      throw new IllegalStateException(
          "the capture of %s was ended, as its Cuda is closed".formatted(stream));
    }
  }

  /** Whether that was all, for who ends the stream, perhaps when the driver answers no more. */
  public boolean endIfPossible() {
    try {
      return end();
    } catch (IllegalStateException e) {
      return true;
    }
  }

  /** Checks that no capture of a blocking stream makes the null stream unusable. */
  public void checkNotInterrupted() {
    if (stream.isLegacy() && stream.streams.captures().isAnyPossible()) {
      stream.checkNotCapturing("work", "");
    }
  }

  /** Refuses what would invalidate a capture, for who holds the stream. */
  public void check(String call, String instead) {
    if (goesOn()) {
      throw refusal(call, instead);
    }
  }

  /** Builds the exception for what a stream cannot take that is capturing, or was just now. */
  public IllegalStateException refusal(String call) {
    return refusal(call, "");
  }

  private IllegalStateException refusal(String call, String instead) {
    return new IllegalStateException(
        "%s: %s is capturing a graph%s"
            .formatted(
                call,
                stream.isLegacy() ? "a stream that takes turns with the " + stream : stream,
                instead.isEmpty() ? WAITS : instead));
  }

  /** The null stream takes part, so to speak, in the capture of any stream that blocks with it. */
  public boolean goesOn() {
    try {
      return stream.session.driver().captures().streamIsCapturing(stream.device.id(), stream.handle)
          != 0;
    } catch (CudaException e) {
      if (e.status() == CudaStatus.STREAM_CAPTURE_IMPLICIT) {
        return true;
      }
      throw e;
    }
  }
}

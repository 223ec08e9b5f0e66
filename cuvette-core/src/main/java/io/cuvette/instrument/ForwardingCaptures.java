package io.cuvette.instrument;

import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CaptureInfo;
import java.util.Objects;

/**
 * Forwards the capture calls to those of another driver; a decorator overrides what it changes.
 * Thread-safe if the other driver is.
 */
public abstract class ForwardingCaptures implements CaptureCalls {
  private final CaptureCalls delegate;

  /**
   * Forwards to the part of a driver.
   *
   * @param delegate the driver or part that calls are forwarded to
   */
  protected ForwardingCaptures(CaptureCalls delegate) {
    this.delegate = Objects.requireNonNull(delegate, "delegate");
  }

  @Override
  public void streamBeginCapture(int device, long stream, int mode) {
    delegate.streamBeginCapture(device, stream, mode);
  }

  @Override
  public long streamEndCapture(int device, long stream) {
    return delegate.streamEndCapture(device, stream);
  }

  @Override
  public int streamIsCapturing(int device, long stream) {
    return delegate.streamIsCapturing(device, stream);
  }

  @Override
  public CaptureInfo streamGetCaptureInfo(int device, long stream) {
    return delegate.streamGetCaptureInfo(device, stream);
  }

  @Override
  public void streamBeginCaptureToGraph(
      int device, long stream, long graph, long[] dependencies, int mode) {
    delegate.streamBeginCaptureToGraph(device, stream, graph, dependencies, mode);
  }

  @Override
  public long[] streamGetCaptureDependencies(int device, long stream) {
    return delegate.streamGetCaptureDependencies(device, stream);
  }

  @Override
  public void streamUpdateCaptureDependencies(int device, long stream, long[] dependencies) {
    delegate.streamUpdateCaptureDependencies(device, stream, dependencies);
  }
}

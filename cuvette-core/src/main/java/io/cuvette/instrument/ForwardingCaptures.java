package io.cuvette.instrument;

import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.UserObject;
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
  public UserObject userObjectCreate() {
    return delegate.userObjectCreate();
  }

  @Override
  public void userObjectRelease(long object) {
    delegate.userObjectRelease(object);
  }

  @Override
  public void graphRetainUserObject(long graph, long object) {
    delegate.graphRetainUserObject(graph, object);
  }

  @Override
  public long graphInstantiate(int device, long graph) {
    return delegate.graphInstantiate(device, graph);
  }

  @Override
  public void graphLaunch(int device, long executable, long stream) {
    delegate.graphLaunch(device, executable, stream);
  }

  @Override
  public void graphExecDestroy(long executable) {
    delegate.graphExecDestroy(executable);
  }

  @Override
  public void graphDestroy(long graph) {
    delegate.graphDestroy(graph);
  }
}

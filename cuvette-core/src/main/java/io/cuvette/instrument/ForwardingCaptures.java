package io.cuvette.instrument;

import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.UserObject;
import java.util.Objects;

/**
 * The part of a forwarding driver about captures and graphs. Thread-safe if the other driver is.
 */
abstract class ForwardingCaptures implements CudaDriver {
  final CudaDriver delegate;

  ForwardingCaptures(CudaDriver delegate) {
    this.delegate = Objects.requireNonNull(delegate, "delegate");
  }

  @Override
  public void streamBeginCapture(int device, long stream, int mode) {
    delegate.captures().streamBeginCapture(device, stream, mode);
  }

  @Override
  public long streamEndCapture(int device, long stream) {
    return delegate.captures().streamEndCapture(device, stream);
  }

  @Override
  public int streamIsCapturing(int device, long stream) {
    return delegate.captures().streamIsCapturing(device, stream);
  }

  @Override
  public CaptureInfo streamGetCaptureInfo(int device, long stream) {
    return delegate.captures().streamGetCaptureInfo(device, stream);
  }

  @Override
  public UserObject userObjectCreate() {
    return delegate.captures().userObjectCreate();
  }

  @Override
  public void userObjectRelease(long object) {
    delegate.captures().userObjectRelease(object);
  }

  @Override
  public void graphRetainUserObject(long graph, long object) {
    delegate.captures().graphRetainUserObject(graph, object);
  }

  @Override
  public long graphInstantiate(int device, long graph) {
    return delegate.captures().graphInstantiate(device, graph);
  }

  @Override
  public void graphLaunch(int device, long executable, long stream) {
    delegate.captures().graphLaunch(device, executable, stream);
  }

  @Override
  public void graphExecDestroy(long executable) {
    delegate.captures().graphExecDestroy(executable);
  }

  @Override
  public void graphDestroy(long graph) {
    delegate.captures().graphDestroy(graph);
  }
}

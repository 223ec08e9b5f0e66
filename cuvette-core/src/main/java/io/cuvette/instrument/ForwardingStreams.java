package io.cuvette.instrument;

import io.cuvette.driver.StreamCalls;
import java.util.Objects;

/**
 * Forwards the stream calls to those of another driver; a decorator overrides what it changes.
 * Thread-safe if the other driver is.
 */
public abstract class ForwardingStreams implements StreamCalls {
  private final StreamCalls delegate;

  /**
   * Forwards to the part of a driver.
   *
   * @param delegate the driver or part that calls are forwarded to
   */
  protected ForwardingStreams(StreamCalls delegate) {
    this.delegate = Objects.requireNonNull(delegate, "delegate");
  }

  @Override
  public long streamCreateWithPriority(int device, int flags, int priority) {
    return delegate.streamCreateWithPriority(device, flags, priority);
  }

  @Override
  public void streamDestroy(int device, long stream) {
    delegate.streamDestroy(device, stream);
  }

  @Override
  public int streamGetPriority(int device, long stream) {
    return delegate.streamGetPriority(device, stream);
  }

  @Override
  public int streamGetFlags(int device, long stream) {
    return delegate.streamGetFlags(device, stream);
  }

  @Override
  public long streamGetId(int device, long stream) {
    return delegate.streamGetId(device, stream);
  }

  @Override
  public int streamGetDevice(int device, long stream) {
    return delegate.streamGetDevice(device, stream);
  }

  @Override
  public boolean streamQuery(int device, long stream) {
    return delegate.streamQuery(device, stream);
  }

  @Override
  public void streamSynchronize(int device, long stream) {
    delegate.streamSynchronize(device, stream);
  }

  @Override
  public void streamWaitEvent(int device, long stream, long event) {
    delegate.streamWaitEvent(device, stream, event);
  }

  @Override
  public void launchHostFunc(int device, long stream, Runnable function) {
    delegate.launchHostFunc(device, stream, function);
  }

  @Override
  public void streamWaitValue32(int device, long stream, long address, int value, int flags) {
    delegate.streamWaitValue32(device, stream, address, value, flags);
  }
}

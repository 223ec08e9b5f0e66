package io.cuvette.instrument;

import io.cuvette.driver.EventCalls;
import java.util.Objects;

/**
 * Forwards the event calls to those of another driver; a decorator overrides what it changes.
 * Thread-safe if the other driver is.
 */
public abstract class ForwardingEvents implements EventCalls {
  private final EventCalls delegate;

  /**
   * Forwards to the part of a driver.
   *
   * @param delegate the driver or part that calls are forwarded to
   */
  protected ForwardingEvents(EventCalls delegate) {
    this.delegate = Objects.requireNonNull(delegate, "delegate");
  }

  @Override
  public long eventCreate(int device, int flags) {
    return delegate.eventCreate(device, flags);
  }

  @Override
  public void eventDestroy(int device, long event) {
    delegate.eventDestroy(device, event);
  }

  @Override
  public void eventRecord(int device, long event, long stream) {
    delegate.eventRecord(device, event, stream);
  }

  @Override
  public boolean eventQuery(int device, long event) {
    return delegate.eventQuery(device, event);
  }

  @Override
  public void eventSynchronize(int device, long event) {
    delegate.eventSynchronize(device, event);
  }

  @Override
  public float eventElapsedTime(int device, long start, long end) {
    return delegate.eventElapsedTime(device, start, end);
  }
}

package io.cuvette.instrument;

import io.cuvette.driver.OrderedCalls;
import java.util.Objects;

/**
 * Forwards the ordered calls to those of another driver; a decorator overrides what it changes.
 * Thread-safe if the other driver is.
 */
public abstract class ForwardingOrdered implements OrderedCalls {
  private final OrderedCalls delegate;

  /**
   * Forwards to the part of a driver.
   *
   * @param delegate the driver or part that calls are forwarded to
   */
  protected ForwardingOrdered(OrderedCalls delegate) {
    this.delegate = Objects.requireNonNull(delegate, "delegate");
  }

  @Override
  public long memAllocAsync(int device, long bytes, long stream) {
    return delegate.memAllocAsync(device, bytes, stream);
  }

  @Override
  public long memAllocFromPoolAsync(int device, long bytes, long pool, long stream) {
    return delegate.memAllocFromPoolAsync(device, bytes, pool, stream);
  }

  @Override
  public void memFreeAsync(int device, long address, long stream) {
    delegate.memFreeAsync(device, address, stream);
  }
}

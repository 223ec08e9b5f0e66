package io.cuvette.instrument;

import io.cuvette.driver.NativeCalls;
import java.util.Objects;

/**
 * Forwards the native calls to those of another driver; a decorator overrides what it changes.
 * Thread-safe if the other driver is.
 */
public abstract class ForwardingNatives implements NativeCalls {
  private final NativeCalls delegate;

  /**
   * Forwards to the part of a driver.
   *
   * @param delegate the driver or part that calls are forwarded to
   */
  protected ForwardingNatives(NativeCalls delegate) {
    this.delegate = Objects.requireNonNull(delegate, "delegate");
  }

  @Override
  public long callMalloc(long function, long parameter, long bytes, int device) {
    return delegate.callMalloc(function, parameter, bytes, device);
  }

  @Override
  public void callFree(long function, long parameter, long address, int device) {
    delegate.callFree(function, parameter, address, device);
  }
}

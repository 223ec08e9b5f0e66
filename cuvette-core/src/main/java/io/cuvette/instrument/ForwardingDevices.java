package io.cuvette.instrument;

import io.cuvette.driver.DeviceCalls;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.driver.PriorityRange;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.UUID;

/**
 * Forwards the device calls to those of another driver; a decorator overrides what it changes.
 * Thread-safe if the other driver is.
 */
public abstract class ForwardingDevices implements DeviceCalls {
  private final DeviceCalls delegate;

  /**
   * Forwards to the part of a driver.
   *
   * @param delegate the driver or part that calls are forwarded to
   */
  protected ForwardingDevices(DeviceCalls delegate) {
    this.delegate = Objects.requireNonNull(delegate, "delegate");
  }

  @Override
  public int driverGetVersion() {
    return delegate.driverGetVersion();
  }

  @Override
  public OptionalInt runtimeGetVersion() {
    return delegate.runtimeGetVersion();
  }

  @Override
  public int deviceGetCount() {
    return delegate.deviceGetCount();
  }

  @Override
  public String deviceGetName(int device) {
    return delegate.deviceGetName(device);
  }

  @Override
  public UUID deviceGetUuid(int device) {
    return delegate.deviceGetUuid(device);
  }

  @Override
  public long deviceTotalMem(int device) {
    return delegate.deviceTotalMem(device);
  }

  @Override
  public int deviceGetAttribute(int attribute, int device) {
    return delegate.deviceGetAttribute(attribute, device);
  }

  @Override
  public String deviceGetPciBusId(int device) {
    return delegate.deviceGetPciBusId(device);
  }

  @Override
  public int deviceGetByPciBusId(String pciBusId) {
    return delegate.deviceGetByPciBusId(pciBusId);
  }

  @Override
  public boolean deviceCanAccessPeer(int device, int peer) {
    return delegate.deviceCanAccessPeer(device, peer);
  }

  @Override
  public void ctxEnablePeerAccess(int device, int peer) {
    delegate.ctxEnablePeerAccess(device, peer);
  }

  @Override
  public void ctxDisablePeerAccess(int device, int peer) {
    delegate.ctxDisablePeerAccess(device, peer);
  }

  @Override
  public void ctxSynchronize(int device) {
    delegate.ctxSynchronize(device);
  }

  @Override
  public PriorityRange ctxGetStreamPriorityRange(int device) {
    return delegate.ctxGetStreamPriorityRange(device);
  }

  @Override
  public long ctxGetLimit(int device, int limit) {
    return delegate.ctxGetLimit(device, limit);
  }

  @Override
  public void ctxSetLimit(int device, int limit, long value) {
    delegate.ctxSetLimit(device, limit, value);
  }

  @Override
  public void profilerStart(int device) {
    delegate.profilerStart(device);
  }

  @Override
  public void profilerStop(int device) {
    delegate.profilerStop(device);
  }

  @Override
  public MemoryInfo memGetInfo(int device) {
    return delegate.memGetInfo(device);
  }
}

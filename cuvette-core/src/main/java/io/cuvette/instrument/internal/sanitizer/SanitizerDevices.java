package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.DeviceCalls;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.driver.PriorityRange;
import io.cuvette.instrument.internal.order.Clock;
import java.util.OptionalInt;
import java.util.UUID;

/** The part of the sanitizer that watches waits for a whole device. Thread-safe. */
public final class SanitizerDevices implements DeviceCalls {
  private final DeviceCalls calls;
  private final SanitizerCore core;

  public SanitizerDevices(CudaDriver driver, SanitizerCore core) {
    this.calls = driver.devices();
    this.core = core;
  }

  @Override
  public void ctxSynchronize(int device) {
    Clock work = core.locked(_ -> core.streams.order.everythingOn(device));
    calls.ctxSynchronize(device);
    core.finish(work);
  }

  @Override
  public int driverGetVersion() {
    return calls.driverGetVersion();
  }

  @Override
  public OptionalInt runtimeGetVersion() {
    return calls.runtimeGetVersion();
  }

  @Override
  public int deviceGetCount() {
    return calls.deviceGetCount();
  }

  @Override
  public String deviceGetName(int device) {
    return calls.deviceGetName(device);
  }

  @Override
  public UUID deviceGetUuid(int device) {
    return calls.deviceGetUuid(device);
  }

  @Override
  public long deviceTotalMem(int device) {
    return calls.deviceTotalMem(device);
  }

  @Override
  public int deviceGetAttribute(int attribute, int device) {
    return calls.deviceGetAttribute(attribute, device);
  }

  @Override
  public String deviceGetPciBusId(int device) {
    return calls.deviceGetPciBusId(device);
  }

  @Override
  public int deviceGetByPciBusId(String pciBusId) {
    return calls.deviceGetByPciBusId(pciBusId);
  }

  @Override
  public boolean deviceCanAccessPeer(int device, int peer) {
    return calls.deviceCanAccessPeer(device, peer);
  }

  @Override
  public void ctxEnablePeerAccess(int device, int peer) {
    calls.ctxEnablePeerAccess(device, peer);
  }

  @Override
  public void ctxDisablePeerAccess(int device, int peer) {
    calls.ctxDisablePeerAccess(device, peer);
  }

  @Override
  public PriorityRange ctxGetStreamPriorityRange(int device) {
    return calls.ctxGetStreamPriorityRange(device);
  }

  @Override
  public long ctxGetLimit(int device, int limit) {
    return calls.ctxGetLimit(device, limit);
  }

  @Override
  public void ctxSetLimit(int device, int limit, long value) {
    calls.ctxSetLimit(device, limit, value);
  }

  @Override
  public void profilerStart(int device) {
    calls.profilerStart(device);
  }

  @Override
  public void profilerStop(int device) {
    calls.profilerStop(device);
  }

  @Override
  public MemoryInfo memGetInfo(int device) {
    return calls.memGetInfo(device);
  }
}

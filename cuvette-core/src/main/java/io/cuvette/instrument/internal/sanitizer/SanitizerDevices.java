package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.DeviceCalls;
import io.cuvette.instrument.ForwardingDevices;
import io.cuvette.instrument.internal.order.Clock;

/** The part of the sanitizer that watches waits for a whole device. Thread-safe. */
public final class SanitizerDevices extends ForwardingDevices {
  private final DeviceCalls calls;
  private final SanitizerCore core;

  public SanitizerDevices(CudaDriver driver, SanitizerCore core) {
    super(driver.devices());
    this.calls = driver.devices();
    this.core = core;
  }

  @Override
  public void ctxSynchronize(int device) {
    Clock work = core.locked(_ -> core.streams.order.everythingOn(device));
    calls.ctxSynchronize(device);
    core.finish(work);
  }
}

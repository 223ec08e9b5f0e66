package io.cuvette.instrument;

import io.cuvette.driver.CudaDriver;

/** The part of the sanitizer that watches waits for a whole device. Thread-safe. */
final class SanitizerDevices extends ForwardingDevices {
  private final SanitizerCore core;

  SanitizerDevices(CudaDriver driver, SanitizerCore core) {
    super(driver.devices());
    this.core = core;
  }

  @Override
  public void ctxSynchronize(int device) {
    Clock work = core.locked(_ -> core.streams.order.everythingOn(device));
    super.ctxSynchronize(device);
    core.finish(work);
  }
}

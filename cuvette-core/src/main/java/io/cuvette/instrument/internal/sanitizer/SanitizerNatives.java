package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.NativeCalls;
import io.cuvette.instrument.internal.report.CallTrace;

/** The part of the sanitizer that watches memory of C functions. Thread-safe. */
public final class SanitizerNatives implements NativeCalls {
  private final NativeCalls calls;
  private final SanitizerCore core;

  public SanitizerNatives(CudaDriver driver, SanitizerCore core) {
    this.calls = driver.natives();
    this.core = core;
  }

  @Override
  public long callMalloc(long function, long parameter, long bytes, int device) {
    CallTrace site =
        CallTrace.of("callMalloc", "function", function, "bytes", bytes, "device", device);
    long address = calls.callMalloc(function, parameter, bytes, device);
    core.check(_ -> core.memory.allocatedNatively(address, bytes, site));
    return address;
  }

  @Override
  public void callFree(long function, long parameter, long address, int device) {
    CallTrace site =
        CallTrace.of("callFree", "function", function, "address", address, "device", device);
    core.check(findings -> core.memory.checkFreeNatively(address, site, findings));
    core.free(
        core.memory::freeNatively,
        address,
        site,
        () -> calls.callFree(function, parameter, address, device));
  }
}

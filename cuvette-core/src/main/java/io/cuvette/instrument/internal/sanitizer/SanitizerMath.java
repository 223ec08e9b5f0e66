package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MathCalls;
import io.cuvette.driver.MathLibrary;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import org.jspecify.annotations.Nullable;

/** The part of the sanitizer that watches handles of libraries. Thread-safe. */
public final class SanitizerMath implements MathCalls {
  private final CudaDriver driver;
  private final SanitizerCore core;

  public SanitizerMath(CudaDriver driver, SanitizerCore core) {
    this.driver = driver;
    this.core = core;
  }

  @Override
  public String mathLibraryVersion(MathLibrary library) {
    return driver.math().mathLibraryVersion(library);
  }

  @Override
  public long mathHandleCreate(MathLibrary library, int device) {
    CallTrace site = CallTrace.of("mathHandleCreate", "library", library, "device", device);
    long handle = driver.math().mathHandleCreate(library, device);
    core.check(_ -> core.mathHandles.add(handle, library, site));
    return handle;
  }

  @Override
  public void mathHandleDestroy(MathLibrary library, int device, long handle) {
    CallTrace site =
        CallTrace.of("mathHandleDestroy", "library", library, "device", device, "handle", handle);
    core.destroy(
        core.mathHandles,
        handle,
        site,
        () -> driver.math().mathHandleDestroy(library, device, handle));
  }

  @Override
  public void mathHandleSetStream(MathLibrary library, int device, long handle, long stream) {
    CallTrace site = use("mathHandleSetStream", handle);
    @Nullable Lane lane = core.lane("mathHandleSetStream", device, stream);
    driver.math().mathHandleSetStream(library, device, handle, stream);
    core.unseen(lane, site); // what the library queues from now on
  }

  @Override
  public void mathHandleSetWorkspace(int device, long handle, long address, long bytes) {
    CallTrace site = use("mathHandleSetWorkspace", handle);
    core.checkLive(site, address, bytes);
    driver.math().mathHandleSetWorkspace(device, handle, address, bytes);
  }

  private CallTrace use(String method, long handle) {
    CallTrace site = CallTrace.passing(method, "handle", handle);
    core.check(findings -> core.mathHandles.use(handle, site, findings));
    return site;
  }
}

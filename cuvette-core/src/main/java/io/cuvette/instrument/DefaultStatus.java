package io.cuvette.instrument;

import static io.cuvette.driver.CudaStatus.LAUNCH_FAILED;
import static io.cuvette.driver.CudaStatus.OUT_OF_MEMORY;
import static io.cuvette.driver.CudaStatus.STREAM_CAPTURE_INVALIDATED;
import static io.cuvette.driver.CudaStatus.UNKNOWN;

import io.cuvette.driver.CudaStatus;

/** The error that a call of the driver most often fails with. Stateless. */
final class DefaultStatus {
  private DefaultStatus() {}

  /**
   * Calls that create memory or handles fail for want of memory; those that wait or query report
   * that a kernel failed; all others fail for an unknown reason. A call that fails after its effect
   * reports that a kernel failed before, or that the capture it ends was invalid.
   */
  static CudaStatus of(String method, FaultMode mode) {
    if (mode == FaultMode.AFTER_EFFECT) {
      return method.equals("streamEndCapture") ? STREAM_CAPTURE_INVALIDATED : LAUNCH_FAILED;
    }
    return switch (method) {
      case "memAlloc",
          "memAllocManaged",
          "memHostAlloc",
          "memHostRegister",
          "memAllocAsync",
          "memAllocFromPoolAsync",
          "memPoolCreate",
          "memAddressReserve",
          "memCreate",
          "memMap",
          "memPoolImportFromShareableHandle",
          "memPoolImportPointer",
          "ipcOpenMemHandle",
          "ipcOpenEventHandle",
          "callMalloc",
          "libraryLoadData",
          "streamCreateWithPriority",
          "eventCreate",
          "userObjectCreate",
          "graphInstantiateWithParams" ->
          OUT_OF_MEMORY;
      case "ctxSynchronize",
          "streamQuery",
          "streamSynchronize",
          "eventQuery",
          "eventSynchronize",
          "eventElapsedTime" ->
          LAUNCH_FAILED;
      default -> UNKNOWN;
    };
  }
}

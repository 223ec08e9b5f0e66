package io.cuvette;

import io.cuvette.driver.CudaException;

/** What is said where there is no stream-ordered memory. Stateless. */
final class StreamOrderedSupport {
  private StreamOrderedSupport() {}

  /** The statuses of a driver or a device without stream-ordered memory, with what works there. */
  static CudaException explained(CudaException e, CudaDevice device) {
    return switch (e.status()) {
      case NOT_SUPPORTED, CALL_REQUIRES_NEWER_DRIVER, NOT_FOUND ->
          e.explained(
              "%s has no stream-ordered memory, which needs a driver of CUDA 11.2 (this one"
                      .formatted(device)
                  + " supports %d); MemoryPool works everywhere"
                      .formatted(device.cuda().driverVersion()));
      default -> e;
    };
  }
}

package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;

/** Page-locked host memory ran out, in the machine or within a pool's limit. Immutable. */
public final class OutOfPinnedMemoryException extends CudaException {
  private static final long serialVersionUID = 1L;

  private final long requestedBytes;

  OutOfPinnedMemoryException(long requestedBytes, String call, String text) {
    super(CudaStatus.OUT_OF_MEMORY, call, text);
    this.requestedBytes = requestedBytes;
  }

  /** The same for a pool of the driver that is of page-locked memory. */
  static OutOfPinnedMemoryException of(OutOfDeviceMemoryException e) {
    var pinned =
        new OutOfPinnedMemoryException(e.requestedBytes(), e.call(), e.details().textOfPool());
    if (e.getCause() != null) {
      pinned.initCause(e.getCause());
    }
    for (Throwable each : e.getSuppressed()) {
      pinned.addSuppressed(each);
    }
    return pinned;
  }

  /** The bytes that were asked for. */
  public long requestedBytes() {
    return requestedBytes;
  }
}

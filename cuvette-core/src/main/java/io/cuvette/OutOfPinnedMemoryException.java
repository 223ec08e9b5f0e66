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

  /** The bytes that were asked for. */
  public long requestedBytes() {
    return requestedBytes;
  }
}

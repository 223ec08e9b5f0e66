package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.OutOfMemoryText;
import java.util.Objects;

/**
 * Thrown when page-locked host memory runs out, of the machine or within a pool's limit. Immutable.
 */
public final class OutOfPinnedMemoryException extends CudaException {
  private static final long serialVersionUID = 1L;

  /** The bytes of the request. */
  private final long requestedBytes;

  /** The message. */
  private final String text;

  /**
   * The failure of a call.
   *
   * @param requestedBytes the requested size in bytes
   * @param call the call that failed
   * @param text the message
   */
  public OutOfPinnedMemoryException(long requestedBytes, String call, String text) {
    super(CudaStatus.OUT_OF_MEMORY.code(), call);
    this.requestedBytes = requestedBytes;
    this.text = Objects.requireNonNull(text, "text");
  }

  /** The same for a pool of the driver that is of page-locked memory. */
  static OutOfPinnedMemoryException of(OutOfDeviceMemoryException e) {
    var pinned =
        new OutOfPinnedMemoryException(
            e.requestedBytes(), e.call(), OutOfMemoryText.ofPinned(e.details(), e.call()));
    if (e.getCause() != null) {
      pinned.initCause(e.getCause());
    }
    for (Throwable each : e.getSuppressed()) {
      pinned.addSuppressed(each);
    }
    return pinned;
  }

  /** A short line, and the numbers in lines below it. */
  @Override
  public String getMessage() {
    return text;
  }

  /** {@return the bytes of the request} */
  public long requestedBytes() {
    return requestedBytes;
  }
}

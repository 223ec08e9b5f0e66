package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.OutOfMemoryText;
import java.util.Objects;

/**
 * Thrown when a device has no memory left after every step of the recovery, with the numbers that
 * explain it. Immutable.
 */
public final class OutOfDeviceMemoryException extends CudaException {
  private static final long serialVersionUID = 1L;

  /** The numbers. */
  private final Details details;

  /** The message. */
  private final String text;

  /**
   * The numbers at the moment the allocation gave up, in bytes unless noted otherwise; −1 where
   * unknown.
   *
   * @param device the number of the device
   * @param requestedBytes the requested size
   * @param blockBytes that size rounded up
   * @param heldBytes the bytes that the pool held from the driver
   * @param usedBytes those in use
   * @param freeBytes those cached
   * @param freeBlocks the number of cached blocks
   * @param pendingBytes those cached bytes that wait for streams, or for a callback to return
   * @param graphBytes those cached bytes that only graphs may use, until they are gone
   * @param largestFreeBytes the largest cached block
   * @param otherStreamsFreeBytes those cached bytes that belonged to other streams
   * @param limitBytes the pool's limit, {@link Long#MAX_VALUE} for none
   * @param driverFreeBytes the bytes that the driver reported as free
   * @param step the last thing that was tried
   */
  public record Details(
      int device,
      long requestedBytes,
      long blockBytes,
      long heldBytes,
      long usedBytes,
      long freeBytes,
      int freeBlocks,
      long pendingBytes,
      long graphBytes,
      long largestFreeBytes,
      long otherStreamsFreeBytes,
      long limitBytes,
      long driverFreeBytes,
      RecoveryStep step)
      implements java.io.Serializable {
    /** Creates the numbers. */
    public Details {
      Objects.requireNonNull(step, "step");
    }
  }

  /**
   * The failure of a call.
   *
   * @param call the call that failed
   * @param details the numbers
   * @param roomBytes what the limit leaves; −1 where unknown
   */
  public OutOfDeviceMemoryException(String call, Details details, long roomBytes) {
    super(CudaStatus.OUT_OF_MEMORY.code(), call);
    this.details = Objects.requireNonNull(details, "details");
    this.text = OutOfMemoryText.of(details, roomBytes, call);
  }

  /** A short line, and the numbers in lines below it. */
  @Override
  public String getMessage() {
    return text;
  }

  /** {@return the numbers} */
  public Details details() {
    return details;
  }

  /** {@return the bytes of the request} */
  public long requestedBytes() {
    return details.requestedBytes;
  }
}

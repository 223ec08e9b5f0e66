package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.util.Objects;

/**
 * Memory of a device ran out after everything was tried. Has the numbers that tell why. Immutable.
 */
public final class OutOfDeviceMemoryException extends CudaException {
  private static final long serialVersionUID = 1L;

  private final Details details;

  /**
   * The numbers at the moment the allocation gave up, in bytes unless said otherwise; −1 where
   * unknown.
   *
   * @param device the number of the device
   * @param requestedBytes what was asked for
   * @param blockBytes what that was rounded to
   * @param heldBytes what the pool held from the driver
   * @param usedBytes what of it was in use
   * @param freeBytes what of it was cached
   * @param freeBlocks the number of cached blocks
   * @param largestFreeBytes the largest cached block
   * @param otherStreamsFreeBytes what of the cached memory belonged to other streams
   * @param limitBytes the pool's limit, {@link Long#MAX_VALUE} for none
   * @param driverFreeBytes what the driver said was free
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
      long largestFreeBytes,
      long otherStreamsFreeBytes,
      long limitBytes,
      long driverFreeBytes,
      RecoveryStep step)
      implements java.io.Serializable {
    public Details {
      Objects.requireNonNull(step, "step");
    }

    private String text() {
      String limit = limitBytes == Long.MAX_VALUE ? "none" : Long.toString(limitBytes);
      return ("requested=%d (block=%d) on device %d (held=%s, used=%s, free=%s in %s blocks,"
              + " largest free=%s, free on other streams=%s, limit=%s, free in the driver=%s),"
              + " tried up to: %s")
          .formatted(
              requestedBytes,
              blockBytes,
              device,
              known(heldBytes),
              known(usedBytes),
              known(freeBytes),
              known(freeBlocks),
              known(largestFreeBytes),
              known(otherStreamsFreeBytes),
              limit,
              known(driverFreeBytes),
              step.text());
    }

    /** What is known of a pool that is of no device. */
    String textOfPool() {
      return "requested=%d of page-locked memory (block=%d, held=%s, used=%s, free=%s), tried up to: %s"
          .formatted(
              requestedBytes,
              blockBytes,
              known(heldBytes),
              known(usedBytes),
              known(freeBytes),
              step.text());
    }

    private static String known(long number) {
      return number < 0 ? "unknown" : Long.toString(number);
    }
  }

  OutOfDeviceMemoryException(String call, Details details) {
    super(CudaStatus.OUT_OF_MEMORY, call, details.text());
    this.details = details;
  }

  /** The numbers. */
  public Details details() {
    return details;
  }

  /** The bytes that were asked for. */
  public long requestedBytes() {
    return details.requestedBytes;
  }
}

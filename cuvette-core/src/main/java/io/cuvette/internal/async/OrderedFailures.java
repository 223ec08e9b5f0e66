package io.cuvette.internal.async;

import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.RecoveryStep;
import io.cuvette.driver.CudaException;
import io.cuvette.internal.base.CudaVersion;
import io.cuvette.internal.block.DirectMemory;
import io.cuvette.internal.session.Device;
import java.util.function.LongSupplier;

/** Builds the exceptions for missing or exhausted stream-ordered memory. Stateless. */
public final class OrderedFailures {
  private static final long UNKNOWN = -1;

  private OrderedFailures() {}

  /**
   * Memory is out, with the numbers of the pool.
   *
   * @param rounded the bytes that were requested from the driver
   * @param held queries what the pool has reserved
   * @param used queries how much of that is in use
   * @param limitBytes {@link Long#MAX_VALUE} if no limit is the reason
   * @param liveBytes what such a limit counts
   */
  public static OutOfDeviceMemoryException outOfMemory(
      String call,
      Device device,
      long bytes,
      long rounded,
      LongSupplier held,
      LongSupplier used,
      long limitBytes,
      long liveBytes) {
    long heldBytes = orUnknown(held);
    long usedBytes = orUnknown(used);
    return new OutOfDeviceMemoryException(
        call,
        new OutOfDeviceMemoryException.Details(
            device.id(),
            bytes,
            rounded,
            heldBytes,
            usedBytes,
            heldBytes < 0 || usedBytes < 0 ? UNKNOWN : heldBytes - usedBytes,
            (int) UNKNOWN,
            UNKNOWN,
            UNKNOWN,
            UNKNOWN,
            UNKNOWN,
            limitBytes,
            DirectMemory.driverFree(device),
            limitBytes == Long.MAX_VALUE ? RecoveryStep.RECLAIM : RecoveryStep.LIMIT),
        limitBytes - liveBytes);
  }

  /** A driver that cannot report the numbers must not hide that memory is exhausted. */
  private static long orUnknown(LongSupplier question) {
    try {
      return question.getAsLong();
    } catch (CudaException e) {
      return UNKNOWN;
    }
  }

  /** The statuses of a driver or a device without stream-ordered memory, with what works there. */
  public static CudaException explained(CudaException e, Device device) {
    return switch (e.status()) {
      case NOT_SUPPORTED, CALL_REQUIRES_NEWER_DRIVER, NOT_FOUND ->
          e.explained(
              "%s has no stream-ordered memory, which needs a driver of CUDA 11.2 (this one"
                      .formatted(device)
                  + " supports %s); MemoryPool works everywhere"
                      .formatted(CudaVersion.text(device.session().driverVersion())));
      default -> e;
    };
  }
}

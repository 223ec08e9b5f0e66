package io.cuvette.internal.base;

import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PinnedPoolStats;
import io.cuvette.RecoveryStep;
import io.cuvette.driver.CudaStatus;

/**
 * Builds the messages of exhausted memory: a short first line, and the numbers in the lines below
 * it. Stateless.
 */
public final class OutOfMemoryText {
  private OutOfMemoryText() {}

  /** The part of the first line about a limit. */
  public static String ofLimit(long roomBytes, long limitBytes) {
    return "free %s of a limit of %d".formatted(known(Math.max(-1, roomBytes)), limitBytes);
  }

  /** The message for memory of a device. */
  public static String of(OutOfDeviceMemoryException.Details d, long roomBytes, String call) {
    boolean limited =
        d.limitBytes() != Long.MAX_VALUE
            && (d.driverFreeBytes() < 0
                || roomBytes <= d.driverFreeBytes() + Math.max(0, d.freeBytes()));
    return """
    out of device memory: %d bytes on device %d, %s
      %s, free in the driver=%s
      held=%s, used=%s, free=%s in %s, pending=%s%s
      largest free=%s, free on other streams=%s, tried up to: %s
      %s\
    """
        .formatted(
            d.requestedBytes(),
            d.device(),
            limited
                ? ofLimit(roomBytes, d.limitBytes())
                : "free %s in the driver".formatted(known(d.driverFreeBytes())),
            asked(d.requestedBytes(), d.blockBytes(), d.limitBytes()),
            known(d.driverFreeBytes()),
            known(d.heldBytes()),
            known(d.usedBytes()),
            known(d.freeBytes()),
            d.freeBlocks() == 1 ? "1 block" : known(d.freeBlocks()) + " blocks",
            known(d.pendingBytes()),
            d.graphBytes() > 0 ? ", for graphs=" + d.graphBytes() : "",
            known(d.largestFreeBytes()),
            known(d.otherStreamsFreeBytes()),
            text(d.step()),
            failed(call));
  }

  /** The message for memory of a driver's pool that is page-locked. */
  public static String ofPinned(OutOfDeviceMemoryException.Details d, String call) {
    return """
    out of page-locked memory: %d bytes
      %s
      held=%s, used=%s, free=%s, tried up to: %s
      %s\
    """
        .formatted(
            d.requestedBytes(),
            asked(d.requestedBytes(), d.blockBytes(), d.limitBytes()),
            known(d.heldBytes()),
            known(d.usedBytes()),
            known(d.freeBytes()),
            text(d.step()),
            failed(call));
  }

  /** The message for a caching pool of page-locked memory. */
  public static String ofPinned(
      PinnedPoolStats now, long bytes, long blockBytes, RecoveryStep step, String call) {
    return """
    out of page-locked memory: %d bytes%s
      %s
      held=%d, used=%d, free=%d in %s, pending=%d, tried up to: %s
      %s\
    """
        .formatted(
            bytes,
            now.limitBytes() == Long.MAX_VALUE
                ? ""
                : ", "
                    + ofLimit(
                        now.limitBytes() - now.usedBytes() - now.pendingBytes(), now.limitBytes()),
            asked(bytes, blockBytes, now.limitBytes()),
            now.heldBytes(),
            now.usedBytes(),
            now.freeBytes(),
            ByteSize.count(now.freeBlocks(), "block"),
            now.pendingBytes(),
            text(step),
            failed(call));
  }

  /** The message for page-locked memory without a pool. */
  public static String ofPinned(long bytes, String call) {
    return "out of page-locked memory: %d bytes\n  requested=%d\n  %s"
        .formatted(bytes, bytes, failed(call));
  }

  private static String asked(long bytes, long blockBytes, long limitBytes) {
    return "requested=%d, block=%d, limit=%s"
        .formatted(
            bytes, blockBytes, limitBytes == Long.MAX_VALUE ? "none" : Long.toString(limitBytes));
  }

  private static String failed(String call) {
    return call + ": " + CudaStatus.describe(CudaStatus.OUT_OF_MEMORY.code());
  }

  private static String known(long number) {
    return number < 0 ? "unknown" : Long.toString(number);
  }

  private static String text(RecoveryStep step) {
    return switch (step) {
      case LIMIT -> "the limit";
      case DRIVER -> "the driver";
      case OWN_BLOCKS -> "own cached blocks";
      case OTHER_STREAMS -> "cached blocks of idle streams";
      case GROW -> "growing";
      case RELEASE -> "releasing cached memory";
      case PRESSURE -> "pressure listeners";
      case WAIT -> "waiting for other streams";
      case RECLAIM -> "reclaiming forgotten buffers";
    };
  }
}

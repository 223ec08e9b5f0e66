package io.cuvette.sim;

import java.util.function.LongConsumer;
import java.util.function.LongSupplier;

/**
 * How many bytes a pool holds and how many are used. It grows in whole steps, to the next one above
 * its limit at most: of 32 MiB as on an H200, or of 2 MiB on a device of less than 1 GiB. Memory is
 * mapped, not cut: any bytes of the pool can serve any allocation. Guarded by the driver's lock.
 */
final class PoolBytes {
  static final long STEP = 32L << 20;
  private static final long SMALL_STEP = 2L << 20;
  private static final long SMALL_DEVICE = 1L << 30;

  private final long limitBytes;
  private final long step;
  private final LongSupplier available;
  private final LongConsumer reserve;
  private long reserved;
  private long reservedHigh;
  private long used;
  private long usedHigh;

  /**
   * An empty pool.
   *
   * @param step what it grows by
   * @param maxBytes the limit, which counts as the next multiple of that; 0 for none
   * @param available how many bytes there are for it to grow
   * @param reserve told of bytes that the pool takes, or gives back if negative
   */
  PoolBytes(long step, long maxBytes, LongSupplier available, LongConsumer reserve) {
    // The driver's sizes are unsigned: a negative one is larger than any memory.
    boolean limited = 0 < maxBytes && maxBytes <= Long.MAX_VALUE - step;
    this.limitBytes = limited ? up(maxBytes, step) : Long.MAX_VALUE;
    this.step = step;
    this.available = available;
    this.reserve = reserve;
  }

  /** What pools of a device with so much memory grow by. */
  static long stepOf(long memoryBytes) {
    return memoryBytes < SMALL_DEVICE ? SMALL_STEP : STEP;
  }

  /** Takes memory for some more bytes; false, and nothing changed, if there is not enough. */
  boolean grow(long bytes) {
    long most = Math.min(limitBytes - reserved, available.getAsLong());
    boolean fits = up(bytes, step) <= most;
    if (fits) {
      change(up(bytes, step));
    }
    return fits;
  }

  /** Gives whole steps back until at most so much is held, as far as it is not in use. */
  void shrinkTo(long bytes, long outstanding) {
    // Unsigned: the largest threshold is 2^64 - 1.
    if (Long.compareUnsigned(reserved, bytes) > 0) {
      release(Math.max(up(outstanding, step), bytes / step * step));
    }
  }

  /** Gives whole steps back, but keeps at least so much. */
  void trimTo(long bytes, long outstanding) {
    if (Long.compareUnsigned(reserved, bytes) > 0) {
      release(up(Math.max(outstanding, bytes), step));
    }
  }

  private void release(long target) {
    if (target < reserved) {
      change(target - reserved);
    }
  }

  private void change(long bytes) {
    reserve.accept(bytes);
    reserved += bytes;
    reservedHigh = Math.max(reservedHigh, reserved);
  }

  void use(long bytes) {
    used += bytes;
    usedHigh = Math.max(usedHigh, used);
  }

  long reserved() {
    return reserved;
  }

  long reservedHigh() {
    return reservedHigh;
  }

  long used() {
    return used;
  }

  long usedHigh() {
    return usedHigh;
  }

  void resetReservedHigh() {
    reservedHigh = reserved;
  }

  void resetUsedHigh() {
    usedHigh = used;
  }

  long limitBytes() {
    return limitBytes;
  }

  private static long up(long bytes, long unit) {
    return bytes > Long.MAX_VALUE - unit ? Long.MAX_VALUE : (bytes + unit - 1) / unit * unit;
  }
}

package io.cuvette.sim.internal.pool;

import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.base.Gaps;
import java.util.function.LongConsumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Where a pool has memory, and what of it is free. It grows at its end in whole steps, to the next
 * one above its limit at most: of 32 MiB as on an H200, or of 2 MiB on a device of less than 1 GiB.
 * An allocation is in one piece, at the front of the last gap that is large enough; steps that are
 * given back leave a hole, which is not filled again unless it is at the end. Guarded by the
 * driver's lock.
 */
public final class PoolSpace {
  public static final long STEP = 32L << 20;
  private static final long SMALL_STEP = 2L << 20;
  private static final long SMALL_DEVICE = 1L << 30;

  /** What of the memory is free, for whoever asks. */
  public final Gaps gaps = new Gaps(Gaps.UNBOUNDED);

  /** What the pool has. */
  public final HighMark reserved = new HighMark();

  private final long limitBytes;
  private final long step;
  private final LongSupplier available;
  private final LongConsumer reserve;
  private long end;

  /**
   * An empty pool.
   *
   * @param step what it grows by
   * @param maxBytes the limit, which counts as the next multiple of that; 0 for none
   * @param available how many bytes there are for it to grow
   * @param reserve told of bytes that the pool takes, or gives back if negative
   */
  public PoolSpace(long step, long maxBytes, LongSupplier available, LongConsumer reserve) {
    // The driver's sizes are unsigned: a negative one is larger than any memory.
    boolean limited = 0 < maxBytes && maxBytes <= Long.MAX_VALUE - step;
    this.limitBytes = limited ? up(maxBytes, step) : Long.MAX_VALUE;
    this.step = step;
    this.available = available;
    this.reserve = reserve;
  }

  /** What pools of a device with so much memory grow by. */
  public static long stepOf(long memoryBytes) {
    return memoryBytes < SMALL_DEVICE ? SMALL_STEP : STEP;
  }

  /**
   * A place for some bytes, which stays free; the pool grows if it has to.
   *
   * @param free the gaps, and what else is as good as free
   * @return null if there is none and the pool cannot grow by as much
   */
  public @Nullable Extent find(Gaps free, long bytes) {
    Extent gap = free.last(bytes);
    if (gap == null) {
      gap = grow(free, bytes);
    }
    return gap == null ? null : new Extent(gap.offset(), bytes);
  }

  private @Nullable Extent grow(Gaps free, long bytes) {
    Extent last = free.endingAt(end);
    long from = last == null ? end : last.offset();
    long missing = up(bytes - (end - from), step);
    if (missing > Math.min(limitBytes - reserved.bytes(), available.getAsLong())) {
      return null;
    }
    change(missing);
    gaps.add(new Extent(end, missing));
    end += missing;
    return new Extent(from, end - from);
  }

  /** Gives whole steps back until at most so much is held, as far as they are free. */
  public void shrinkTo(long bytes) {
    // Unsigned: the largest threshold is 2^64 - 1.
    if (Long.compareUnsigned(reserved.bytes(), bytes) > 0) {
      release(reserved.bytes() - bytes / step * step);
    }
  }

  /** Gives whole steps back, but keeps at least so much. */
  public void trimTo(long bytes) {
    if (Long.compareUnsigned(reserved.bytes(), bytes) > 0) {
      release(reserved.bytes() - up(bytes, step));
    }
  }

  private void release(long most) {
    long left = most;
    for (Extent gap : gaps.all()) {
      long from = up(gap.offset(), step);
      long bytes = Math.min(gap.end() / step * step - from, left);
      if (bytes > 0) {
        gaps.remove(new Extent(from, bytes));
        change(-bytes);
        left -= bytes;
        end = from + bytes == end ? from : end;
      }
    }
  }

  private void change(long bytes) {
    reserve.accept(bytes);
    reserved.add(bytes);
  }

  public long limitBytes() {
    return limitBytes;
  }

  private static long up(long bytes, long unit) {
    return bytes > Long.MAX_VALUE - unit ? Long.MAX_VALUE : (bytes + unit - 1) / unit * unit;
  }
}

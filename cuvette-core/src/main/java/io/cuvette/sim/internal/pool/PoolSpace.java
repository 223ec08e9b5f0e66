package io.cuvette.sim.internal.pool;

import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.base.Gaps;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongConsumer;
import java.util.function.LongUnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Where a pool has memory, and what of it is free. Its addresses are one range, twice its limit;
 * memory is behind them in steps: of 32 MiB as on an H200, or of 2 MiB on a device of less than 1
 * GiB. An allocation is at the front of the smallest gap that has memory everywhere, else of the
 * smallest gap, of which what lies behind all allocations is mostly the last. Steps that it lacks
 * are those in which nothing is, wherever they are, and then new ones. Guarded by the driver's
 * lock.
 */
public final class PoolSpace {
  public static final long STEP = 32L << 20;
  private static final long SMALL_STEP = 2L << 20;
  private static final long SMALL_DEVICE = 1L << 30;

  /** All addresses, in bytes: whole steps. */
  private static final long ADDRESSES = Long.MAX_VALUE / STEP * STEP;

  private static final Extent NOWHERE = new Extent(0, 0);

  /** The addresses that are free for any stream, with memory or without. */
  public final Gaps gaps = new Gaps(Gaps.UNBOUNDED);

  /** The steps that are there. */
  private final Gaps mapped = new Gaps(Gaps.UNBOUNDED);

  /** What the pool has. */
  public final HighMark reserved = new HighMark();

  private final long limitBytes;
  private final long step;
  private final LongUnaryOperator available;
  private final LongConsumer reserve;

  /**
   * An empty pool.
   *
   * @param step what it grows by
   * @param maxBytes the limit, which counts as the next multiple of that; 0 for none
   * @param memoryBytes what a pool without a limit has addresses for, twice
   * @param available how many bytes there are for it to grow, if it needs so many
   * @param reserve reserves bytes for the pool, or releases them if negative
   */
  public PoolSpace(
      long step,
      long maxBytes,
      long memoryBytes,
      LongUnaryOperator available,
      LongConsumer reserve) {
    // The driver's sizes are unsigned: a negative one is larger than any memory.
    this.limitBytes = 0 < maxBytes ? up(maxBytes, step) : Long.MAX_VALUE;
    this.step = step;
    this.available = available;
    this.reserve = reserve;
    long half = Math.min(up(0 < maxBytes ? maxBytes : memoryBytes, step), ADDRESSES / 2);
    gaps.add(new Extent(0, 2 * half));
  }

  /** What pools of a device with so much memory grow by. */
  public static long stepOf(long memoryBytes) {
    return memoryBytes < SMALL_DEVICE ? SMALL_STEP : STEP;
  }

  /**
   * A place for some bytes, which stays free; the pool grows if it has to.
   *
   * @param free the gaps, and what else is as good as free
   * @return null if the pool cannot grow by as much
   */
  public @Nullable Extent find(Gaps free, long bytes) {
    Extent place = placeIn(free, bytes);
    return place != null && map(place) ? place : null;
  }

  /**
   * Gets the idle steps and those that are left for an allocation that is refused, as the driver
   * does before it refuses, and makes its gap the youngest; not for one that no addresses are for.
   */
  public void growInVain(Gaps free, long bytes) {
    Extent place = placeIn(free, bytes);
    if (place != null) {
      List<Extent> holes = holes(steps(place));
      release(idle(steps(place)), sum(holes));
      long left = roomBytes(0) / step * step;
      for (Extent hole : holes) {
        long taken = Math.min(hole.byteSize(), left);
        add(new Extent(hole.offset(), taken));
        left -= taken;
      }
      free.remove(place);
      free.add(place);
    }
  }

  /** A place in the smallest gap that has memory everywhere. */
  public @Nullable Extent findWhole(long bytes) {
    Extent gap = gaps.smallest(bytes, fit -> isThere(steps(fit)));
    return gap == null ? null : new Extent(gap.offset(), bytes);
  }

  private @Nullable Extent placeIn(Gaps free, long bytes) {
    Extent gap = free.smallest(bytes, fit -> isThere(steps(fit)));
    if (gap == null) {
      gap = free.smallest(bytes);
    }
    return gap == null ? null : new Extent(gap.offset(), bytes);
  }

  private boolean isThere(Extent steps) {
    return mapped.in(steps).equals(List.of(steps));
  }

  /** Gets all steps of a place: idle ones, the last first, then new ones; false if they lack. */
  private boolean map(Extent place) {
    Extent whole = steps(place);
    long room = roomBytes(sum(holes(whole)) - sum(idle(whole)));
    List<Extent> holes = holes(whole); // more of them if the room had to be made
    if (holes.isEmpty()) {
      return true;
    }
    long missing = sum(holes);
    List<Extent> idle = idle(whole);
    if (missing - sum(idle) > room) {
      return false;
    }
    release(idle, missing);
    holes.forEach(this::add);
    return true;
  }

  private Extent steps(Extent place) {
    long from = place.offset() / step * step;
    return new Extent(from, up(place.end(), step) - from);
  }

  /** What of some steps is not there. */
  private List<Extent> holes(Extent steps) {
    Gaps holes = new Gaps(Gaps.UNBOUNDED);
    holes.add(steps);
    mapped.in(steps).forEach(holes::remove);
    return holes.all();
  }

  /** The steps in which nothing is, but for some. */
  private List<Extent> idle(Extent but) {
    List<Extent> idle = new ArrayList<>();
    for (Extent there : mapped.all()) {
      for (Extent gap : gaps.in(there)) {
        long from = up(gap.offset(), step);
        Extent whole = new Extent(from, Math.max(0, gap.end() / step * step - from));
        Gaps others = new Gaps(Gaps.UNBOUNDED);
        others.add(whole);
        others.remove(but);
        idle.addAll(others.all());
      }
    }
    return idle;
  }

  private static long sum(List<Extent> extents) {
    return extents.stream().mapToLong(Extent::byteSize).sum();
  }

  private long roomBytes(long needed) {
    long most = limitBytes - reserved.bytes();
    return Math.min(most, available.applyAsLong(Math.min(most, needed)));
  }

  /** Gives whole steps back until at most so much is held, as far as they are free. */
  public void shrinkTo(long bytes) {
    // Unsigned: the largest threshold is 2^64 - 1.
    if (Long.compareUnsigned(reserved.bytes(), bytes) > 0) {
      release(idle(NOWHERE), reserved.bytes() - bytes / step * step);
    }
  }

  /** Gives whole steps back, but keeps at least so much. */
  public void trimTo(long bytes) {
    if (Long.compareUnsigned(reserved.bytes(), bytes) > 0) {
      release(idle(NOWHERE), reserved.bytes() - up(bytes, step));
    }
  }

  private void release(List<Extent> idle, long most) {
    long left = most;
    for (Extent steps : idle.reversed()) {
      long bytes = Math.min(steps.byteSize(), left);
      mapped.remove(new Extent(steps.end() - bytes, bytes));
      change(-bytes);
      left -= bytes;
    }
  }

  private void add(Extent steps) {
    mapped.add(steps);
    change(steps.byteSize());
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

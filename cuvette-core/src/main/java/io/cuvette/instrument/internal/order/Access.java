package io.cuvette.instrument.internal.order;

import io.cuvette.driver.LaunchWatcher;
import io.cuvette.instrument.internal.report.CallTrace;
import java.util.List;
import java.util.Locale;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A use of bytes by work on a stream. Immutable.
 *
 * @param number the number of the work on its stream, the same for all between two moments at which
 *     somebody learns how far the stream is
 * @param watcher who learns what of the range a launch touches; null for other work, and if the
 *     driver does not tell
 * @param gates whether each of the gates before it that were closed when it was queued is closed
 */
public record Access(
    Lane lane,
    long number,
    Range range,
    CallTrace site,
    @Nullable LaunchWatcher watcher,
    List<BooleanSupplier> gates) {
  public Access(Lane lane, long number, Range range, CallTrace site) {
    this(lane, number, range, site, null, List.of());
  }

  /** The same of another range. */
  public Access of(Range other) {
    return new Access(lane, number, other, site, watcher, gates);
  }

  /** Whether it cannot begin before the host opens a gate. */
  public boolean isHeld() {
    return gates.stream().anyMatch(BooleanSupplier::getAsBoolean);
  }

  /** Whether its order to another use of the same bytes matters: one of them writes. */
  public boolean conflictsWith(Kind other) {
    return range.kind().conflictsWith(other);
  }

  /** Whether that is so, and no launch has to tell what it touches. */
  public boolean mattersNow(Kind other) {
    return watcher == null && conflictsWith(other);
  }

  /** Whether only what launches touch can tell whether its order to another use matters. */
  public boolean mayMeet(Access other) {
    boolean isTold = watcher != null || other.watcher != null;
    boolean areLaunches = watcher != null && other.watcher != null;
    return isTold && (areLaunches || conflictsWith(other.range.kind()));
  }

  /** Whether it is before and behind the same work as another one, and does the same. */
  public boolean isLike(Access other) {
    boolean isNear = lane == other.lane && number == other.number && watcher == other.watcher;
    return isNear && range.kind() == other.range.kind();
  }

  /** Each is one of its own. */
  @Override
  public boolean equals(@Nullable Object other) {
    return this == other;
  }

  @Override
  public int hashCode() {
    return System.identityHashCode(this);
  }

  /** What work does with bytes. */
  public enum Kind {
    READ,
    WRITE,
    /**
     * Belongs to a kernel, which reads or writes it: nobody knows which. Two kernels may read the
     * same at once, so that is no conflict.
     */
    USE,
    /** Needs the memory but not its content, such as a prefetch. */
    HOLD;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }

    boolean conflictsWith(Kind other) {
      boolean writes = this == WRITE || other == WRITE || (this == USE) != (other == USE);
      return this != HOLD && other != HOLD && writes;
    }

    public boolean standsInFor(Kind earlier) {
      return this == WRITE || this == earlier || earlier == HOLD;
    }
  }

  /**
   * A range of addresses and what is done with it. Immutable.
   *
   * @param host whether it is host memory, which need not come from the driver
   */
  public record Range(long address, long bytes, Kind kind, boolean host) {

    public boolean overlaps(Range other) {
      return covers(other.address) || other.covers(address);
    }

    private boolean covers(long point) {
      return Long.compareUnsigned(point - address, bytes) < 0;
    }

    @Override
    public String toString() {
      return "%s of %d bytes at 0x%x".formatted(kind, bytes, address);
    }
  }
}

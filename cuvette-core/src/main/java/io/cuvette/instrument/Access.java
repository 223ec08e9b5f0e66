package io.cuvette.instrument;

import java.util.Locale;

/**
 * A use of bytes by work on a stream. Immutable.
 *
 * @param number the number of the work on its stream
 */
record Access(Lane lane, long number, Range range, Site site) {

  /** Whether the order of the two matters: they share bytes and one writes. */
  boolean conflictsWith(Range other) {
    return range.kind().conflictsWith(other.kind()) && range.overlaps(other);
  }

  /** Whether whatever would conflict with this use conflicts with a later one just as well. */
  boolean isSupersededBy(Range later) {
    return later.covers(range) && later.kind().standsInFor(range.kind());
  }

  /** What work does with bytes. */
  enum Kind {
    READ,
    WRITE,
    /** Needs the memory but not its content, such as a prefetch. */
    HOLD;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }

    boolean conflictsWith(Kind other) {
      return this != HOLD && other != HOLD && (this == WRITE || other == WRITE);
    }

    boolean standsInFor(Kind earlier) {
      return this == WRITE || this == earlier || earlier == HOLD;
    }
  }

  /**
   * A range of addresses and what is done with it. Immutable.
   *
   * @param host whether it is host memory, which need not come from the driver
   */
  record Range(long address, long bytes, Kind kind, boolean host) {

    boolean overlaps(Range other) {
      return covers(other.address) || other.covers(address);
    }

    boolean covers(Range other) {
      return covers(other.address) && other.address - address + other.bytes <= bytes;
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

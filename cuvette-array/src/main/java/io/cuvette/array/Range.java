package io.cuvette.array;

import static java.lang.Long.MAX_VALUE;
import static java.lang.Long.MIN_VALUE;

/**
 * What is taken of one axis by a slice: a range with a step, which keeps the axis, one index, which
 * drops it, or a new axis of size 1. Negative places count from the end of the axis, and ranges are
 * cut to what the axis has, as in Python. A value.
 */
public final class Range {
  private static final Range ALL = new Range(Kind.RANGE, MIN_VALUE, MIN_VALUE, 1);
  private static final Range NEW_AXIS = new Range(Kind.NEW_AXIS, 0, 0, 1);

  enum Kind {
    RANGE,
    INDEX,
    NEW_AXIS
  }

  final Kind kind;

  /** The first place; MIN_VALUE for the end of the axis where the step begins. */
  private final long start;

  /** The place behind the last one; MIN_VALUE for the end of the axis where the step ends. */
  private final long stop;

  final long step;

  private Range(Kind kind, long start, long stop, long step) {
    this.kind = kind;
    this.start = start;
    this.stop = stop;
    this.step = step;
  }

  /** {@return the whole axis, Python's {@code :}} */
  public static Range all() {
    return ALL;
  }

  /**
   * {@return a part of the axis, Python's {@code start:stop}}
   *
   * @param start the first place, from the end if negative
   * @param stop the place behind the last one, from the end if negative
   */
  public static Range of(long start, long stop) {
    return new Range(Kind.RANGE, place(start), place(stop), 1);
  }

  /**
   * {@return the axis from a place on, Python's {@code start:}}
   *
   * @param start the first place, from the end if negative
   */
  public static Range from(long start) {
    return new Range(Kind.RANGE, place(start), MIN_VALUE, 1);
  }

  /**
   * {@return the axis up to a place, Python's {@code :stop}}
   *
   * @param stop the place behind the last one, from the end if negative
   */
  public static Range to(long stop) {
    return new Range(Kind.RANGE, MIN_VALUE, place(stop), 1);
  }

  /**
   * {@return one place, which drops the axis, Python's {@code index}}
   *
   * @param index the place, from the end if negative
   */
  public static Range at(long index) {
    return new Range(Kind.INDEX, index, index, 1);
  }

  /** {@return a new axis of size 1, Python's {@code None}} */
  public static Range newAxis() {
    return NEW_AXIS;
  }

  /**
   * {@return each so manieth of this range, Python's {@code start:stop:step}; backwards if
   * negative}
   *
   * @param by the step, any number but 0
   * @throws IllegalArgumentException for 0, or if this is no range
   */
  public Range step(long by) {
    if (by == 0 || by == MIN_VALUE) {
      throw new IllegalArgumentException("step: %d (expected: not 0)".formatted(by));
    }
    if (kind != Kind.RANGE) {
      throw new IllegalArgumentException("step of %s (expected: of a range)".formatted(this));
    }
    return new Range(kind, start, stop, by);
  }

  /** {@return the axis backwards, Python's {@code ::-1}} */
  public static Range reversed() {
    return ALL.step(-1);
  }

  /** The first place on an axis of a size; the index itself, checked, if this is one. */
  long first(long size, int axis) {
    if (kind == Kind.INDEX) {
      return LayoutChecks.index(start, axis, size);
    }
    return start == MIN_VALUE ? (step > 0 ? 0 : size - 1) : cut(start, size);
  }

  /** How many places it has on an axis of a size. */
  long count(long size) {
    long from = first(size, 0);
    long to = stop == MIN_VALUE ? (step > 0 ? size : -1) : cut(stop, size);
    long distance = step > 0 ? to - from : from - to;
    return distance <= 0 ? 0 : (distance - 1) / Math.abs(step) + 1;
  }

  private long cut(long place, long size) {
    long counted = place < 0 ? place + size : place;
    return step > 0 ? Math.clamp(counted, 0, size) : Math.clamp(counted, -1, size - 1);
  }

  /** MIN_VALUE means something else here, and is as far before the axis as the next number. */
  private static long place(long place) {
    return Math.clamp(place, MIN_VALUE + 1, MAX_VALUE);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Range that
        && kind == that.kind
        && start == that.start
        && stop == that.stop
        && step == that.step;
  }

  @Override
  public int hashCode() {
    return java.util.Objects.hash(kind, start, stop, step);
  }

  @Override
  public String toString() {
    return switch (kind) {
      case INDEX -> Long.toString(start);
      case NEW_AXIS -> "newAxis";
      case RANGE -> text(start) + ":" + text(stop) + (step == 1 ? "" : ":" + step);
    };
  }

  private static String text(long place) {
    return place == MIN_VALUE ? "" : Long.toString(place);
  }
}

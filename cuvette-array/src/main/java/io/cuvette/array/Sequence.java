package io.cuvette.array;

import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * Numbers at equal distances.
 *
 * @param count how many
 * @param numbers what they are
 */
record Sequence(long count, Numbers numbers) {
  /** How many elements are written on the host before they are copied to a device. */
  private static final long PART = 1 << 18;

  /** Writes the number of a place, from 0, as an element. */
  @FunctionalInterface
  interface Numbers {
    void put(ElementType type, MemorySegment to, long at, long place);
  }

  private static Numbers reals(double first, double step) {
    return (type, to, at, place) -> Elements.putReal(type, to, at, first + place * step);
  }

  static Sequence of(ElementType type, long start, long stop, long step) {
    checkNumber(type);
    if (step == 0) {
      throw new IllegalArgumentException("step: 0 (expected: not 0)");
    }
    boolean isEmpty = step > 0 ? start >= stop : start <= stop;
    long distance = step > 0 ? stop - start : start - stop; // unsigned
    long stride = step > 0 ? step : -step; // likewise
    long count = isEmpty ? 0 : Long.divideUnsigned(distance - 1, stride) + 1;
    if (count < 0) {
      throw new IllegalArgumentException(
          "arange(%d, %d, %d) (expected: at most 2^63-1 elements)".formatted(start, stop, step));
    }
    if (count > 0) {
      Scalar _ = Scalar.of(type, start);
      Scalar _ = Scalar.of(type, start + (count - 1) * step);
    }
    return new Sequence(
        count,
        (typed, to, at, place) -> Elements.putInteger(typed, to, at, start + place * step, false));
  }

  static Sequence of(ElementType type, double start, double stop, double step) {
    checkFloating(type);
    checkFinite("start", start);
    checkFinite("stop", stop);
    checkFinite("step", step);
    if (step == 0) {
      throw new IllegalArgumentException("step: 0.0 (expected: not 0)");
    }
    double count = Math.ceil((stop - start) / step);
    if (!(count < 0x1p63)) {
      throw new IllegalArgumentException(
          "arange(%s, %s, %s): %s elements (expected: at most 2^63-1)"
              .formatted(start, stop, step, count));
    }
    return new Sequence((long) Math.max(count, 0), reals(start, step));
  }

  static Sequence between(ElementType type, double first, double last, long count) {
    checkFloating(type);
    checkFinite("first", first);
    checkFinite("last", last);
    checkFinite("last - first", last - first);
    if (count < 0) {
      throw new IllegalArgumentException("count: %d (expected: >= 0)".formatted(count));
    }
    double step = count > 1 ? (last - first) / (count - 1) : 0;
    Numbers inside = reals(first, step);
    Numbers end = reals(last, 0);
    return new Sequence(
        count,
        (typed, to, at, place) ->
            (place > 0 && place == count - 1 ? end : inside).put(typed, to, at, place));
  }

  private static void checkNumber(ElementType type) {
    if (Objects.requireNonNull(type, "type") == ElementType.BOOLEAN) {
      throw new IllegalArgumentException("type: BOOLEAN (expected: a type of numbers)");
    }
  }

  private static void checkFloating(ElementType type) {
    if (!Objects.requireNonNull(type, "type").isFloating() && !type.isComplex()) {
      throw new IllegalArgumentException(
          "type: %s (expected: a floating or complex type)".formatted(type));
    }
  }

  private static void checkFinite(String name, double value) {
    if (!Double.isFinite(value)) {
      throw new IllegalArgumentException("%s: %s (expected: finite)".formatted(name, value));
    }
  }

  /** Writes the numbers into an array with one axis of their size. */
  void write(NdArray target) {
    switch (target) {
      case HostArray host -> write(host, 0);
      case CudaArray device -> {
        HostArrays memory = HostArrays.of(device.module().cuda());
        long part = Math.min(count, PART);
        try (HostArray values = memory.allocate(device.type(), Layout.of(part))) {
          for (long done = 0; done < count; done += part) {
            long more = Math.min(part, count - done);
            HostArray some = values.slice(Range.to(more));
            write(some, done);
            device.slice(Range.of(done, done + more)).copyFrom(some);
          }
        }
      }
    }
  }

  private void write(HostArray target, long from) {
    int bytes = target.type().bytes();
    for (long i = 0; i < target.size(); i++) {
      numbers.put(
          target.type(), target.segment(), (target.layout().offset() + i) * bytes, from + i);
    }
  }
}

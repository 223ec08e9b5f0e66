package io.cuvette.array;

import java.util.Arrays;
import java.util.Objects;
import java.util.stream.IntStream;

/** What shapes, strides, axes and indices must be. Stateless. */
final class LayoutChecks {
  private LayoutChecks() {}

  /** A copy of a shape that is one. */
  static long[] shape(long[] shape) {
    long[] own = Objects.requireNonNull(shape, "shape").clone();
    rank(own.length);
    for (long size : own) {
      if (size < 0) {
        throw new IllegalArgumentException(
            "shape: %s (expected: sizes >= 0)".formatted(Arrays.toString(own)));
      }
    }
    try {
      long _ = Arrays.stream(own).filter(size -> size > 0).reduce(1, Math::multiplyExact);
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException(
          "shape: %s (expected: at most 2^63-1 elements)".formatted(Arrays.toString(own)), e);
    }
    return own;
  }

  static void rank(int rank) {
    if (rank > Layout.MAX_RANK) {
      throw new IllegalArgumentException(
          "shape: %d axes (expected: at most %d)".formatted(rank, Layout.MAX_RANK));
    }
  }

  /** How many elements a checked shape has. */
  static long size(long[] shape) {
    long size = 1;
    for (long each : shape) {
      size *= each;
    }
    return size;
  }

  static void plainOrder(Order order) {
    if (Objects.requireNonNull(order, "order") != Order.C && order != Order.F) {
      throw new IllegalArgumentException("order: %s (expected: C or F)".formatted(order));
    }
  }

  static long[] strides(long[] shape, long[] strides) {
    long[] own = Objects.requireNonNull(strides, "strides").clone();
    if (own.length != shape.length) {
      throw new IllegalArgumentException(
          "strides: %s (expected: %d, one for each axis of %s)"
              .formatted(Arrays.toString(own), shape.length, Arrays.toString(shape)));
    }
    return own;
  }

  /** That no element lies before 0 or where no long counts. */
  static void inside(long[] shape, long[] strides, long offset) {
    boolean fits = offset >= 0;
    try {
      long lowest = offset;
      long highest = offset;
      for (int axis = 0; size(shape) != 0 && axis < shape.length; axis++) {
        long reach = Math.multiplyExact(shape[axis] - 1, strides[axis]);
        lowest = Math.addExact(lowest, Math.min(reach, 0));
        highest = Math.addExact(highest, Math.max(reach, 0));
      }
      fits &= lowest >= 0 && highest < Long.MAX_VALUE;
    } catch (ArithmeticException _) {
      fits = false;
    }
    if (!fits) {
      throw new IllegalArgumentException(
          "shape %s, strides %s, offset %d (expected: elements at 0 to 2^63-2)"
              .formatted(Arrays.toString(shape), Arrays.toString(strides), offset));
    }
  }

  static int axis(int axis, int rank) {
    if (axis < -rank || axis >= rank) {
      throw new IndexOutOfBoundsException(
          rank == 0
              ? "axis: %d (expected: none, there are no axes)".formatted(axis)
              : "axis: %d (expected: %d to %d)".formatted(axis, -rank, rank - 1));
    }
    return axis < 0 ? axis + rank : axis;
  }

  static long index(long index, int axis, long size) {
    if (index < -size || index >= size) {
      throw new IndexOutOfBoundsException(
          size == 0
              ? "index: %d on axis %d (expected: none, its size is 0)".formatted(index, axis)
              : "index: %d on axis %d (expected: %d to %d)"
                  .formatted(index, axis, -size, size - 1));
    }
    return index < 0 ? index + size : index;
  }

  /** Axes that are all of them, each once, counted from the front. */
  static int[] permutation(int[] axes, int rank) {
    int[] own = Objects.requireNonNull(axes, "axes").clone();
    boolean[] seen = new boolean[rank];
    boolean complete = own.length == rank;
    for (int i = 0; complete && i < rank; i++) {
      complete = own[i] >= -rank && own[i] < rank;
      if (complete) {
        own[i] = axis(own[i], rank);
        complete = !seen[own[i]];
        seen[own[i]] = true;
      }
    }
    if (!complete) {
      throw new IllegalArgumentException(
          "axes: %s (expected: each of %d axes once)".formatted(Arrays.toString(axes), rank));
    }
    return own;
  }

  /** Some axes, each once and from 0; all if none are named. */
  static int[] distinctAxes(int[] axes, int rank) {
    int[] own = Objects.requireNonNull(axes, "axes").clone();
    if (own.length == 0) {
      return IntStream.range(0, rank).toArray();
    }
    boolean[] seen = new boolean[rank];
    for (int i = 0; i < own.length; i++) {
      own[i] = axis(own[i], rank);
      if (seen[own[i]]) {
        throw new IllegalArgumentException(
            "axes: %s (expected: each once)".formatted(Arrays.toString(axes)));
      }
      seen[own[i]] = true;
    }
    Arrays.sort(own);
    return own;
  }

  static int[] axesOfOne(int[] axes, long[] shape) {
    int[] own = Objects.requireNonNull(axes, "axes").clone();
    for (int i = 0; i < own.length; i++) {
      own[i] = axis(own[i], shape.length);
      if (shape[own[i]] != 1) {
        throw new IllegalArgumentException(
            "axis: %d of %s (expected: one of size 1)".formatted(axes[i], Arrays.toString(shape)));
      }
    }
    return own;
  }

  /** The shape that a reshape asks for, with the size that follows from the others. */
  static long[] reshaped(Layout from, long[] to) {
    long[] target = Objects.requireNonNull(to, "shape").clone();
    rank(target.length);
    int open = -1;
    for (int axis = 0; axis < target.length; axis++) {
      if (target[axis] == -1 && open < 0) {
        open = axis;
        target[axis] = 1;
      } else if (target[axis] < 0) {
        throw cannotReshape(from, to);
      }
    }
    long known = size(shape(target));
    if (open >= 0) {
      if (known == 0 || from.size() % known != 0) {
        throw cannotReshape(from, to);
      }
      target[open] = from.size() / known;
    } else if (known != from.size()) {
      throw cannotReshape(from, to);
    }
    return target;
  }

  private static IllegalArgumentException cannotReshape(Layout from, long[] to) {
    return new IllegalArgumentException(
        "shape: %s (expected: one of %d elements, as %s; -1 at most once)"
            .formatted(Arrays.toString(to), from.size(), Arrays.toString(from.shape())));
  }
}

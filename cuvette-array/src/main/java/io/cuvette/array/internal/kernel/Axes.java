package io.cuvette.array.internal.kernel;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * The axes of a loop over several arrays at once, the fastest first, with neighbours joined where
 * one step of the outer is as far as all of the inner, in all arrays. Immutable.
 *
 * @param shape the size of each axis; none if there is one element
 * @param strides of each array, in bytes
 */
@SuppressWarnings("ArrayRecordComponent") // nobody compares them
public record Axes(long[] shape, long[][] strides) {
  private record Axis(long size, long[] steps) {}

  /**
   * The axes of a loop whose order is free: by the distances in the first array.
   *
   * @param shape the size of each axis, the last one fastest
   * @param strides of each array, in bytes
   */
  public static Axes anyOrder(long[] shape, long[]... strides) {
    List<Axis> axes = axes(shape, strides);
    axes.sort(Comparator.comparingLong(axis -> Math.abs(axis.steps[0])));
    return joined(axes, strides.length);
  }

  /**
   * The axes of a loop in order: the elements keep their numbers.
   *
   * @param shape the size of each axis, the last one fastest
   * @param strides of each array, in bytes
   */
  public static Axes inOrder(long[] shape, long[]... strides) {
    return joined(axes(shape, strides), strides.length);
  }

  private static List<Axis> axes(long[] shape, long[]... strides) {
    List<Axis> axes = new ArrayList<>();
    for (int axis = shape.length - 1; axis >= 0; axis--) {
      if (shape[axis] != 1) {
        long[] steps = new long[strides.length];
        for (int k = 0; k < steps.length; k++) {
          steps[k] = strides[k][axis];
        }
        axes.add(new Axis(shape[axis], steps));
      }
    }
    return axes;
  }

  private static Axes joined(List<Axis> axes, int arrays) {
    List<Axis> result = new ArrayList<>();
    for (Axis outer : axes) {
      Axis inner = result.isEmpty() ? null : result.getLast();
      if (inner != null && follows(outer, inner)) {
        result.set(result.size() - 1, new Axis(inner.size * outer.size, inner.steps));
      } else {
        result.add(outer);
      }
    }
    long[] shape = result.stream().mapToLong(Axis::size).toArray();
    long[][] strides = new long[arrays][shape.length];
    for (int d = 0; d < shape.length; d++) {
      for (int k = 0; k < arrays; k++) {
        strides[k][d] = result.get(d).steps[k];
      }
    }
    return new Axes(shape, strides);
  }

  private static boolean follows(Axis outer, Axis inner) {
    for (int k = 0; k < outer.steps.length; k++) {
      if (outer.steps[k] != inner.steps[k] * inner.size) {
        return false;
      }
    }
    return true;
  }
}

package io.cuvette.array;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.LongUnaryOperator;
import java.util.stream.IntStream;

/**
 * A view as a list: where each element is, in order C of the indices. It knows no strides: every
 * operation goes through all indices one by one.
 *
 * @param shape the size of each axis
 * @param places where each element is, in order C
 */
record ModelView(long[] shape, long[] places) {

  /** All places from 0 on. */
  static ModelView whole(long... shape) {
    long size = Arrays.stream(shape).reduce(1, (a, b) -> a * b);
    return new ModelView(shape, IntStream.range(0, (int) size).asLongStream().toArray());
  }

  long place(long[] index) {
    long at = 0;
    for (int axis = 0; axis < shape.length; axis++) {
      at = at * shape[axis] + index[axis];
    }
    return places[(int) at];
  }

  /** The index that comes after another, in order C; false behind the last one. */
  static boolean next(long[] index, long[] shape) {
    for (int axis = shape.length - 1; axis >= 0; axis--) {
      if (++index[axis] < shape[axis]) {
        return true;
      }
      index[axis] = 0;
    }
    return false;
  }

  /** What finds the index in this for one in the result. */
  interface Origin {
    long[] of(long[] index);
  }

  private ModelView made(long[] to, Origin origin) {
    int size = (int) Arrays.stream(to).reduce(1, (a, b) -> a * b);
    long[] found = new long[size];
    long[] index = new long[to.length];
    for (int i = 0; i < size; i++) {
      found[i] = place(origin.of(index));
      boolean _ = next(index, to);
    }
    return new ModelView(to, found);
  }

  /** Takes some indices of an axis. */
  ModelView take(int axis, List<Long> indices) {
    long[] to = shape.clone();
    to[axis] = indices.size();
    return made(
        to,
        index -> {
          long[] from = index.clone();
          from[axis] = indices.get((int) index[axis]);
          return from;
        });
  }

  /** The indices of {@code start:stop:step}, found by going through all of them. */
  static List<Long> range(long size, Long start, Long stop, long step) {
    LongUnaryOperator counted = place -> place < 0 ? place + size : place;
    List<Long> indices = new ArrayList<>();
    if (step > 0) {
      long from = start == null ? 0 : counted.applyAsLong(start);
      long to = stop == null ? size : counted.applyAsLong(stop);
      for (long i = Math.max(from, 0); i < size && i < to; i += step) {
        indices.add(i);
      }
    } else {
      long from = start == null ? size - 1 : counted.applyAsLong(start);
      long to = stop == null ? -1 : counted.applyAsLong(stop);
      for (long i = Math.min(from, size - 1); i >= 0 && i > to; i += step) {
        indices.add(i);
      }
    }
    return indices;
  }

  ModelView drop(int axis) {
    long[] to =
        IntStream.range(0, shape.length).filter(i -> i != axis).mapToLong(i -> shape[i]).toArray();
    return new ModelView(to, places);
  }

  ModelView insert(int axis) {
    List<Long> to = new ArrayList<>(Arrays.stream(shape).boxed().toList());
    to.add(axis, 1L);
    return new ModelView(to.stream().mapToLong(i -> i).toArray(), places);
  }

  ModelView transpose(int[] axes) {
    long[] to = Arrays.stream(axes).mapToLong(axis -> shape[axis]).toArray();
    return made(
        to,
        index -> {
          long[] from = new long[axes.length];
          for (int i = 0; i < axes.length; i++) {
            from[axes[i]] = index[i];
          }
          return from;
        });
  }

  ModelView reshape(long[] to) {
    return new ModelView(to, places);
  }

  ModelView broadcast(long[] to) {
    return made(
        to,
        index -> {
          long[] from = new long[shape.length];
          for (int axis = 0; axis < shape.length; axis++) {
            from[axis] = shape[axis] == 1 ? 0 : index[to.length - shape.length + axis];
          }
          return from;
        });
  }

  boolean isDistinct() {
    return Arrays.stream(places).distinct().count() == places.length;
  }

  boolean shares(ModelView other) {
    return Arrays.stream(places).anyMatch(a -> Arrays.stream(other.places).anyMatch(b -> a == b));
  }
}

package io.cuvette.array;

import java.util.Arrays;
import java.util.Objects;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** Computes the strides of views. Works on checked shapes; stateless. */
final class LayoutViews {
  private LayoutViews() {}

  /** The axes from the slowest to the fastest. */
  static int[] axes(int rank, Order order) {
    int[] axes = new int[rank];
    Arrays.setAll(axes, axis -> order == Order.C ? axis : rank - 1 - axis);
    return axes;
  }

  /** The axes from the one with the largest stride to that with the smallest. */
  static int[] byStride(long[] strides) {
    return IntStream.range(0, strides.length)
        .boxed()
        .sorted((a, b) -> Long.compare(Math.abs(strides[b]), Math.abs(strides[a])))
        .mapToInt(Integer::intValue)
        .toArray();
  }

  /** Strides without gaps, for axes from the slowest to the fastest. */
  static long[] dense(long[] shape, int[] axes) {
    long[] strides = new long[shape.length];
    long stride = 1;
    for (int i = axes.length - 1; i >= 0; i--) {
      strides[axes[i]] = stride;
      stride *= Math.max(shape[axes[i]], 1);
    }
    return strides;
  }

  static boolean isDense(long[] shape, long[] strides, int[] axes) {
    long stride = 1;
    for (int i = axes.length - 1; i >= 0; i--) {
      long size = shape[axes[i]];
      if (size != 1 && strides[axes[i]] != stride) {
        return false;
      }
      stride *= size;
    }
    return true;
  }

  /** How far the elements reach from the first one, upwards or downwards. */
  static long reach(long[] shape, long[] strides, boolean upwards) {
    long reach = 0;
    for (int axis = 0; axis < shape.length; axis++) {
      long most = (shape[axis] - 1) * strides[axis];
      reach += upwards ? Math.max(most, 0) : Math.min(most, 0);
    }
    return reach;
  }

  /** Whether each axis steps over all that the faster ones reach. */
  static boolean areDistinct(long[] shape, long[] strides) {
    int[] axes = byStride(strides);
    long reached = 0;
    for (int i = axes.length - 1; i >= 0; i--) {
      long size = shape[axes[i]];
      long stride = Math.abs(strides[axes[i]]);
      if (size > 1) {
        if (stride <= reached) {
          return false;
        }
        reached += (size - 1) * stride;
      }
    }
    return true;
  }

  static Layout slice(Layout of, Range[] ranges) {
    Objects.requireNonNull(ranges, "ranges");
    int rank = of.rank();
    long[] shape = new long[rank + ranges.length];
    long[] strides = new long[rank + ranges.length];
    long offset = of.offset();
    int axis = 0;
    int made = 0;
    for (Range range : ranges) {
      Objects.requireNonNull(range, "range");
      if (range.kind == Range.Kind.NEW_AXIS) {
        shape[made++] = 1;
        continue;
      }
      if (axis == rank) {
        throw new IllegalArgumentException(
            "%s (expected: ranges for at most %d axes, the shape is %s)"
                .formatted(Arrays.toString(ranges), rank, Arrays.toString(of.sizes())));
      }
      long size = of.sizes()[axis];
      long stride = of.steps()[axis];
      long first = range.first(size, axis);
      if (range.kind == Range.Kind.INDEX) {
        offset += first * stride;
      } else {
        long count = range.count(size);
        shape[made] = count;
        strides[made++] = count < 2 ? stride : stride * range.step;
        offset += count == 0 ? 0 : first * stride;
      }
      axis++;
    }
    LayoutChecks.rank(made + rank - axis);
    System.arraycopy(of.sizes(), axis, shape, made, rank - axis);
    System.arraycopy(of.steps(), axis, strides, made, rank - axis);
    int total = made + rank - axis;
    return Layout.view(Arrays.copyOf(shape, total), Arrays.copyOf(strides, total), offset);
  }

  /**
   * The strides by which the elements have another shape; null if there are none. Axes of both that
   * have the same product are looked at together: those of the old shape must follow each other
   * without a gap.
   */
  static long @Nullable [] reshapedStrides(Layout from, long[] target) {
    long[] changed = new long[target.length];
    if (from.size() == 0) {
      return dense(target, axes(target.length, Order.C));
    }
    int[] old = IntStream.range(0, from.rank()).filter(axis -> from.sizes()[axis] != 1).toArray();
    int begin = 0;
    int made = 0;
    while (begin < old.length) {
      long product = from.sizes()[old[begin]];
      int end = begin + 1;
      int madeEnd = made;
      long madeProduct = 1;
      while (product != madeProduct) {
        if (madeProduct < product) {
          madeProduct *= target[madeEnd++];
        } else {
          product *= from.sizes()[old[end++]];
        }
      }
      if (!follow(from, old, begin, end)) {
        return null;
      }
      long stride = from.steps()[old[end - 1]];
      for (int axis = madeEnd - 1; axis >= made; axis--) {
        changed[axis] = stride;
        stride *= target[axis];
      }
      begin = end;
      made = madeEnd;
    }
    Arrays.fill(changed, made, changed.length, 1); // axes of size 1
    return changed;
  }

  private static boolean follow(Layout from, int[] axes, int begin, int end) {
    for (int i = begin; i + 1 < end; i++) {
      long next = from.steps()[axes[i + 1]] * from.sizes()[axes[i + 1]];
      if (from.steps()[axes[i]] != next) {
        return false;
      }
    }
    return true;
  }

  static long[] broadcastStrides(Layout from, long[] target) {
    int added = target.length - from.rank();
    boolean fits = added >= 0;
    long[] strides = new long[target.length];
    for (int axis = 0; fits && axis < from.rank(); axis++) {
      long size = from.sizes()[axis];
      fits = size == 1 || size == target[added + axis];
      strides[added + axis] = size == target[added + axis] ? from.steps()[axis] : 0;
    }
    if (!fits) {
      throw new IllegalArgumentException(
          "shape: %s (expected: one that %s can be broadcast to)"
              .formatted(Arrays.toString(target), Arrays.toString(from.sizes())));
    }
    return strides;
  }

  static long[] broadcastShape(long[][] shapes) {
    Objects.requireNonNull(shapes, "shapes");
    int rank = 0;
    for (long[] shape : shapes) {
      rank = Math.max(rank, Objects.requireNonNull(shape, "shape").length);
    }
    long[] common = new long[rank];
    Arrays.fill(common, 1);
    for (long[] shape : shapes) {
      long[] own = LayoutChecks.shape(shape);
      for (int i = 1; i <= own.length; i++) {
        long size = own[own.length - i];
        if (size != 1 && common[rank - i] != 1 && size != common[rank - i]) {
          throw new IllegalArgumentException(
              "shapes: %s (expected: sizes that are equal or 1 on each axis, from the last on)"
                  .formatted(Arrays.deepToString(shapes)));
        }
        common[rank - i] = size == 1 ? common[rank - i] : size;
      }
    }
    return LayoutChecks.shape(common);
  }

  /** A shape with more axes behind. */
  static long[] joined(long[] shape, long... more) {
    long[] all = Arrays.copyOf(shape, shape.length + more.length);
    System.arraycopy(more, 0, all, shape.length, more.length);
    return all;
  }

  static int[] axesOfOne(long[] shape) {
    return IntStream.range(0, shape.length).filter(axis -> shape[axis] == 1).toArray();
  }

  static Layout without(Layout of, int[] axes) {
    int[] kept =
        IntStream.range(0, of.rank())
            .filter(axis -> Arrays.stream(axes).noneMatch(gone -> gone == axis))
            .toArray();
    return Layout.view(
        Arrays.stream(kept).mapToLong(axis -> of.sizes()[axis]).toArray(),
        Arrays.stream(kept).mapToLong(axis -> of.steps()[axis]).toArray(),
        of.offset());
  }

  static Layout with(Layout of, int axis) {
    LayoutChecks.rank(of.rank() + 1);
    long[] shape = new long[of.rank() + 1];
    long[] strides = new long[of.rank() + 1];
    for (int i = 0; i < shape.length; i++) {
      shape[i] = i == axis ? 1 : of.sizes()[i < axis ? i : i - 1];
      strides[i] = i == axis ? 1 : of.steps()[i < axis ? i : i - 1];
    }
    return Layout.view(shape, strides, of.offset());
  }
}

package io.cuvette.array;

import java.util.Arrays;

/**
 * The fewest runs that go through two layouts of one shape element by element: axes of size 1 are
 * left out, and axes that follow each other in both without a gap are one. Immutable.
 */
final class CommonLoop {
  private final long[] shape;
  private final long[] targetStrides;
  private final long[] sourceStrides;
  private final long targetOffset;
  private final long sourceOffset;

  /** Elements at equal distances in both memories. */
  @FunctionalInterface
  interface Run {
    void accept(long target, long source, long count, long targetStep, long sourceStep);
  }

  private CommonLoop(long[] shape, Layout target, Layout source, long[] to, long[] from) {
    this.shape = shape;
    this.targetStrides = to;
    this.sourceStrides = from;
    this.targetOffset = target.offset();
    this.sourceOffset = source.offset();
  }

  /** The loop over all elements; the axes are ordered by the target's strides. */
  static CommonLoop of(Layout target, Layout source) {
    int rank = target.rank();
    long[] shape = new long[rank];
    long[] to = new long[rank];
    long[] from = new long[rank];
    int made = 0;
    for (int axis : LayoutViews.byStride(target.steps())) {
      long size = target.sizes()[axis];
      long toStep = target.steps()[axis];
      long fromStep = source.steps()[axis];
      if (size == 1) {
        continue;
      }
      if (made > 0 && to[made - 1] == toStep * size && from[made - 1] == fromStep * size) {
        shape[made - 1] *= size;
      } else {
        shape[made++] = size;
      }
      to[made - 1] = toStep;
      from[made - 1] = fromStep;
    }
    return new CommonLoop(
        Arrays.copyOf(shape, made),
        target,
        source,
        Arrays.copyOf(to, made),
        Arrays.copyOf(from, made));
  }

  boolean isEmpty() {
    return LayoutChecks.size(shape) == 0;
  }

  /** How many runs there are. */
  long runs() {
    return shape.length == 0 ? 1 : LayoutChecks.size(Arrays.copyOf(shape, shape.length - 1));
  }

  /** Whether all runs are without gaps on both sides. */
  boolean isContiguousInside() {
    int last = shape.length - 1;
    return last < 0 || (targetStrides[last] == 1 && sourceStrides[last] == 1);
  }

  /** Calls for each run, if there is an element. */
  void run(Run run) {
    if (!isEmpty()) {
      run(0, targetOffset, sourceOffset, run);
    }
  }

  private void run(int axis, long target, long source, Run run) {
    if (shape.length == 0) {
      run.accept(target, source, 1, 1, 1);
    } else if (axis == shape.length - 1) {
      run.accept(target, source, shape[axis], targetStrides[axis], sourceStrides[axis]);
    } else {
      for (long i = 0; i < shape[axis]; i++) {
        run(axis + 1, target + i * targetStrides[axis], source + i * sourceStrides[axis], run);
      }
    }
  }
}

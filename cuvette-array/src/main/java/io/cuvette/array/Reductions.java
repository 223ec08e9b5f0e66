package io.cuvette.array;

import io.cuvette.array.internal.kernel.Axes;
import io.cuvette.array.internal.kernel.ReductionPlan;
import io.cuvette.array.internal.twin.Cells;
import io.cuvette.array.internal.twin.ReductionTwin;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.stream.IntStream;

/** Reduces arrays along axes. Stateless. */
final class Reductions {
  private Reductions() {}

  static <A extends NdArray> A reduce(BaseArray<A> a, Reduction reduction, int... axes) {
    a.checkOpen();
    ElementType type = reduction.resultType(a.type());
    Layout layout = a.layout();
    int[] reduced = LayoutChecks.distinctAxes(axes, layout.rank());
    int[] kept =
        IntStream.range(0, layout.rank())
            .filter(axis -> Arrays.stream(reduced).noneMatch(each -> each == axis))
            .toArray();
    long[] shape = sizes(layout, kept);
    if (reduction.isOfOneElement()
        && LayoutChecks.size(sizes(layout, reduced)) == 0
        && LayoutChecks.size(shape) > 0) {
      throw new IllegalArgumentException(
          "%s: shape %s, axes %s (expected: at least one element)"
              .formatted(reduction, Arrays.toString(layout.sizes()), Arrays.toString(reduced)));
    }
    return Outs.fill(
        a,
        null,
        () -> a.module().empty(type, shape),
        made -> reduce(a, made, new ReductionTwin(reduction, a.type()), kept, reduced));
  }

  private static void reduce(
      BaseArray<?> a, BaseArray<?> made, ReductionTwin twin, int[] kept, int[] reduced) {
    if (made.layout().size() == 0) {
      return;
    }
    ReductionPlan plan =
        ReductionPlan.of(
            Axes.inOrder(
                sizes(a.layout(), kept),
                steps(a, kept),
                steps(made, IntStream.range(0, kept.length).toArray())),
            Axes.inOrder(sizes(a.layout(), reduced), steps(a, reduced)),
            a.firstByte(),
            made.firstByte());
    switch (made) {
      case CudaArray device -> Launches.reduce(device, (CudaArray) a, twin, plan);
      case HostArray host -> {
        MemorySegment out = host.segment();
        MemorySegment in = ((HostArray) a).segment();
        HostAccess.run(() -> twin.run(plan.inOnePass(), Cells.of(out), Cells.of(in)), out, in);
      }
    }
  }

  private static long[] sizes(Layout layout, int[] axes) {
    return Arrays.stream(axes).mapToLong(axis -> layout.sizes()[axis]).toArray();
  }

  private static long[] steps(BaseArray<?> a, int[] axes) {
    return Arrays.stream(axes)
        .mapToLong(axis -> a.layout().steps()[axis] * a.type().bytes())
        .toArray();
  }
}

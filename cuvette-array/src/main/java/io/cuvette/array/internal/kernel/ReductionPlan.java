package io.cuvette.array.internal.kernel;

import org.jspecify.annotations.Nullable;

/**
 * How elements are reduced: in one pass, or in two where there are few results of many elements. It
 * depends on shapes and strides alone, so that each device joins the elements in the same order.
 *
 * @param first the pass over the elements
 * @param second the pass over the parts; null if there is one pass
 */
public record ReductionPlan(ReductionArgument first, @Nullable ReductionArgument second) {
  /** The threads of a block. */
  public static final int THREADS = 256;

  private static final int FEW = 64;
  private static final int ROW_CHUNK = 4096;
  private static final int COLUMN_CHUNK = 128;
  private static final int ENOUGH_BLOCKS = 1024;

  /**
   * The plan.
   *
   * @param kept the axes of the results in both arrays: of the operand, then of the result
   * @param reduced the other axes of the operand
   */
  public static ReductionPlan of(Axes kept, Axes reduced, long inOffset, long outOffset) {
    long results = product(kept.shape());
    long elements = product(reduced.shape());
    boolean columns = results > 1 && (elements <= FEW || isAcross(kept, reduced, results));
    long splits = columns ? columnSplits(results, elements) : rowSplits(results, elements);
    long chunk = Math.max(1, (elements + splits - 1) / splits);
    splits = Math.max(1, (elements + chunk - 1) / chunk);
    boolean isOne = splits == 1;
    ReductionArgument first =
        new ReductionArgument(
            results,
            elements,
            splits,
            chunk,
            inOffset,
            isOne ? outOffset : 0,
            columns,
            false,
            !isOne,
            elements,
            kept.shape(),
            kept.strides()[0],
            kept.strides()[1],
            reduced.shape(),
            reduced.strides()[0]);
    return new ReductionPlan(first, isOne ? null : second(first, outOffset));
  }

  /** The same in one pass, for who has one thread. */
  public ReductionArgument inOnePass() {
    return new ReductionArgument(
        first.results(),
        first.elements(),
        1,
        first.elements(),
        first.inOffset(),
        second == null ? first.outOffset() : second.outOffset(),
        false,
        false,
        false,
        first.total(),
        first.keptShape(),
        first.keptStride(),
        first.outStride(),
        first.reducedShape(),
        first.reducedStride());
  }

  private static ReductionArgument second(ReductionArgument first, long outOffset) {
    return new ReductionArgument(
        first.results(),
        first.splits(),
        1,
        first.splits(),
        0,
        outOffset,
        false,
        true,
        false,
        first.total(),
        first.keptShape(),
        first.keptStride(),
        first.outStride(),
        first.reducedShape(),
        first.reducedStride());
  }

  /** Whether neighbours in memory belong to different results. */
  private static boolean isAcross(Axes kept, Axes reduced, long results) {
    return results >= FEW
        && reduced.shape().length > 0
        && Math.abs(kept.strides()[0][0]) < Math.abs(reduced.strides()[0][0]);
  }

  private static long rowSplits(long results, long elements) {
    long wanted = (ENOUGH_BLOCKS + results - 1) / results;
    return Math.clamp((elements + ROW_CHUNK - 1) / ROW_CHUNK, 1, wanted);
  }

  private static long columnSplits(long results, long elements) {
    long blocks = (results + THREADS - 1) / THREADS;
    long wanted = (ENOUGH_BLOCKS + blocks - 1) / blocks;
    return Math.clamp((elements + COLUMN_CHUNK - 1) / COLUMN_CHUNK, 1, wanted);
  }

  private static long product(long[] shape) {
    long product = 1;
    for (long size : shape) {
      product *= size;
    }
    return product;
  }

  /** The blocks of a pass along x. */
  public static long blocks(ReductionArgument pass) {
    return pass.columns()
        ? (pass.results() + THREADS - 1) / THREADS
        : pass.results() * pass.splits();
  }
}

package io.cuvette.array.internal.kernel;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.MemorySegment;

/**
 * One pass of a reduction: {@code Reduction} of reduce.cuh. Axes come from the fastest on, strides
 * and offsets are in bytes. The arrays are its own.
 *
 * @param results how many results there are
 * @param elements how many elements each has
 * @param splits in how many parts each is made
 * @param chunk how many elements a part has; the last one may have fewer
 * @param columns whether a thread has a part of its own, else a block
 * @param fromPartial whether the elements are parts that another pass made
 * @param toPartial whether the parts are written, for another pass
 * @param total how many elements a result has in all passes
 */
@SuppressWarnings("ArrayRecordComponent") // nobody compares them
public record ReductionArgument(
    long results,
    long elements,
    long splits,
    long chunk,
    long inOffset,
    long outOffset,
    boolean columns,
    boolean fromPartial,
    boolean toPartial,
    long total,
    long[] keptShape,
    long[] keptStride,
    long[] outStride,
    long[] reducedShape,
    long[] reducedStride) {
  /** The size of the structure in bytes. */
  public static final int BYTES = 1360;

  private static final int KEPT_RANK = 48;
  private static final int REDUCED_RANK = 52;
  private static final int COLUMNS = 56;
  private static final int PARTIALS = 60;
  private static final int TOTAL = 64;
  private static final int AXES = 80;
  private static final int STEP = LoopArgument.MAX_RANK * Long.BYTES;

  /** The structure. */
  public MemorySegment structure() {
    MemorySegment s = MemorySegment.ofArray(new long[BYTES / Long.BYTES]);
    LoopArgument.put(s, 0, results, elements, splits, chunk, inOffset, outOffset);
    s.set(JAVA_INT, KEPT_RANK, keptShape.length);
    s.set(JAVA_INT, REDUCED_RANK, reducedShape.length);
    s.set(JAVA_INT, COLUMNS, columns ? 1 : 0);
    s.set(JAVA_INT, PARTIALS, (fromPartial ? 1 : 0) | (toPartial ? 2 : 0));
    LoopArgument.put(s, TOTAL, total);
    LoopArgument.put(s, AXES, keptShape);
    LoopArgument.put(s, AXES + STEP, keptStride);
    LoopArgument.put(s, AXES + 2 * STEP, outStride);
    LoopArgument.put(s, AXES + 3 * STEP, reducedShape);
    LoopArgument.put(s, AXES + 4 * STEP, reducedStride);
    return s;
  }

  /** Reads the structure. */
  public static ReductionArgument of(MemorySegment s) {
    long[] head = LoopArgument.get(s, 0, 6);
    int kept = s.get(JAVA_INT, KEPT_RANK);
    int reduced = s.get(JAVA_INT, REDUCED_RANK);
    int partials = s.get(JAVA_INT, PARTIALS);
    return new ReductionArgument(
        head[0],
        head[1],
        head[2],
        head[3],
        head[4],
        head[5],
        s.get(JAVA_INT, COLUMNS) == 1,
        (partials & 1) == 1,
        (partials & 2) == 2,
        LoopArgument.get(s, TOTAL, 1)[0],
        LoopArgument.get(s, AXES, kept),
        LoopArgument.get(s, AXES + STEP, kept),
        LoopArgument.get(s, AXES + 2 * STEP, kept),
        LoopArgument.get(s, AXES + 3 * STEP, reduced),
        LoopArgument.get(s, AXES + 4 * STEP, reduced));
  }
}

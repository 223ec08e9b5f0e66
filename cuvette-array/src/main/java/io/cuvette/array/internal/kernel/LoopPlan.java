package io.cuvette.array.internal.kernel;

/**
 * How a kernel runs over elements.
 *
 * @param argument what it is given
 * @param perThread how many elements a thread has
 */
public record LoopPlan(LoopArgument argument, int perThread) {
  private static final int PACK_BYTES = 16;

  /**
   * An array of a loop.
   *
   * @param bytes the size of an element
   * @param address where the memory begins, for what can be moved in packs; 0 for one value
   * @param offset where the first element is in the memory, in bytes
   * @param strides in bytes
   * @param value the bits of the one value; empty for elements in memory
   */
  @SuppressWarnings("ArrayRecordComponent") // nobody compares them
  public record Array(int bytes, long address, long offset, long[] strides, long[] value) {}

  /** The loop over a result and its operands, which have one shape of at least one element. */
  public static LoopPlan of(long[] shape, Array... arrays) {
    long[][] strides = new long[arrays.length][];
    long[] offsets = new long[1 + LoopArgument.OPERANDS];
    long[][] values = new long[arrays.length - 1][];
    int largest = 1;
    for (int k = 0; k < arrays.length; k++) {
      strides[k] = arrays[k].strides;
      offsets[k] = arrays[k].offset;
      largest = Math.max(largest, arrays[k].bytes);
      if (k > 0) {
        values[k - 1] = arrays[k].value;
      }
    }
    Axes axes = Axes.anyOrder(shape, strides);
    int pack = PACK_BYTES / largest;
    boolean vector = axes.shape().length == 1;
    for (int k = 0; k < arrays.length && vector; k++) {
      vector = isPacked(arrays[k], axes.strides()[k][0], pack, k > 0);
    }
    long count = 1;
    for (long size : axes.shape()) {
      count *= size;
    }
    return new LoopPlan(
        new LoopArgument(count, vector, axes.shape(), axes.strides(), offsets, values),
        vector ? pack : 1);
  }

  private static boolean isPacked(Array array, long stride, int pack, boolean isOperand) {
    boolean isOne = isOperand && (array.value.length > 0 || stride == 0);
    boolean isAligned = (array.address + array.offset) % ((long) pack * array.bytes) == 0;
    return isOne || (stride == array.bytes && isAligned);
  }

  /** How many threads there are. */
  public long threads() {
    return (argument.count() - 1) / perThread + 1;
  }
}

package io.cuvette.cli.replay;

/**
 * A recorded trace in primitive arrays, one element an operation. Immutable by convention.
 *
 * @param name the file as it was named
 * @param bytes the requested size of an allocation, {@link #FREE} for a free
 * @param slots which of {@code slotCount} places the block lives in; reused after a free
 * @param streams the index in {@code streamIds} of the stream the operation was recorded on
 * @param lines the line of the file
 * @param slotCount the most blocks that are live at once
 * @param streamIds the recorded stream handles, in the order they first appear
 * @param peakLiveBytes the most requested bytes that are live at once
 * @param failures the number of recorded failed allocations, which are not operations
 */
@SuppressWarnings("ArrayRecordComponent") // traces are not compared
record Trace(
    String name,
    long[] bytes,
    int[] slots,
    int[] streams,
    int[] lines,
    int slotCount,
    long[] streamIds,
    long peakLiveBytes,
    long failures) {

  static final long FREE = -1;

  /** The same operations on other streams. */
  Trace withStreams(int[] onStreams, long[] ids) {
    return new Trace(name, bytes, slots, onStreams, lines, slotCount, ids, peakLiveBytes, failures);
  }

  /** The number of allocations and frees. */
  int operations() {
    return bytes.length;
  }
}

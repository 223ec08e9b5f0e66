package io.cuvette.instrument.internal.memory;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Marks memory of the host that nobody has written yet with a number that no program writes by
 * chance: writes through a segment cannot be seen, but the mark is gone after them. Stateless.
 */
final class Unwritten {
  /** Whole marks in a range that tell; fewer may be there by chance. */
  private static final int LEAST_BYTES = 15;

  /** More takes longer to mark than an allocation may. */
  private static final long MOST_BYTES = 64L << 20;

  private static final long MARK = 0x9D7B_E3C5_26F8_A14BL;
  private static final int PIECE = 1 << 14;

  /** Marks in a row, and one more, since a range can begin inside one. */
  private static final MemorySegment MARKS = marks();

  private Unwritten() {}

  private static MemorySegment marks() {
    ByteBuffer marks = ByteBuffer.allocateDirect(PIECE + Long.BYTES).order(ByteOrder.nativeOrder());
    while (marks.hasRemaining()) {
      marks.putLong(MARK);
    }
    return MemorySegment.ofBuffer(marks.flip()).asReadOnly();
  }

  /** Marks memory, unless it is too large. */
  static void mark(MemorySegment memory) {
    if (memory.byteSize() <= MOST_BYTES && !memory.isReadOnly()) {
      for (long at = 0; at < memory.byteSize(); at += PIECE) {
        long bytes = Math.min(PIECE, memory.byteSize() - at);
        MemorySegment.copy(marksAt(memory.address(), bytes), 0, memory, at, bytes);
      }
    }
  }

  /** Whether every byte of a range is as it was marked: it begins so, and repeats itself. */
  static boolean isAllMarked(MemorySegment range) {
    long bytes = range.byteSize();
    return bytes >= LEAST_BYTES
        && range.asSlice(0, Long.BYTES).mismatch(marksAt(range.address(), Long.BYTES)) < 0
        && MemorySegment.mismatch(range, Long.BYTES, bytes, range, 0, bytes - Long.BYTES) < 0;
  }

  /** What is in marked memory at an address; a piece has whole marks, so all pieces are alike. */
  private static MemorySegment marksAt(long address, long bytes) {
    return MARKS.asSlice(address & (Long.BYTES - 1), bytes);
  }
}

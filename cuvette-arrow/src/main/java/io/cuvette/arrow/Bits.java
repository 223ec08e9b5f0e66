package io.cuvette.arrow;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;

/** Bits of Arrow in memory of the host, the lowest of a byte first. Stateless. */
final class Bits {
  private Bits() {}

  /**
   * Moves bits to the start of their memory, and clears those behind them in the last byte.
   *
   * @param from the first of them, 0 to 7
   */
  static void toStart(MemorySegment memory, int from, long count) {
    long bytes = Columns.bytes(count, 1);
    for (long i = 0; i < bytes && from > 0; i++) {
      int next = i + 1 < memory.byteSize() ? memory.get(JAVA_BYTE, i + 1) : 0;
      int both = (memory.get(JAVA_BYTE, i) & 0xFF) | (next << Byte.SIZE);
      memory.set(JAVA_BYTE, i, (byte) (both >> from));
    }
    int rest = (int) (count % Byte.SIZE);
    if (rest > 0) {
      memory.set(
          JAVA_BYTE, bytes - 1, (byte) (memory.get(JAVA_BYTE, bytes - 1) & ((1 << rest) - 1)));
    }
  }

  /** How many of the first bits are 1; those behind them in the last byte are 0. */
  static long ones(MemorySegment memory, long count) {
    long ones = 0;
    for (long i = 0; i < Columns.bytes(count, 1); i++) {
      ones += Integer.bitCount(memory.get(JAVA_BYTE, i) & 0xFF);
    }
    return ones;
  }
}

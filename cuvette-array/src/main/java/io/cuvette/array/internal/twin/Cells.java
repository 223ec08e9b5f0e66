package io.cuvette.array.internal.twin;

import java.lang.foreign.MemorySegment;

/** The memory of an operand, by bytes from a start. */
public interface Cells {

  /** Reads as many bytes as the target has. */
  void read(long offset, MemorySegment target);

  /** Writes bytes. */
  void write(long offset, MemorySegment source);

  /** The bytes of a segment. */
  static Cells of(MemorySegment memory) {
    return new Cells() {
      @Override
      public void read(long offset, MemorySegment target) {
        MemorySegment.copy(memory, offset, target, 0, target.byteSize());
      }

      @Override
      public void write(long offset, MemorySegment source) {
        MemorySegment.copy(source, 0, memory, offset, source.byteSize());
      }
    };
  }
}

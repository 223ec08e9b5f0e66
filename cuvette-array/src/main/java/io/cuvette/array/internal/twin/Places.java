package io.cuvette.array.internal.twin;

import java.lang.foreign.MemorySegment;

/**
 * Walks over the elements of a strided array, the first axis fastest, and moves them between memory
 * and a {@link Lane}. For one thread.
 */
final class Places {
  private final long[] shape;
  private final long[] stride;
  private final int bytes;
  private final long[] index;
  private long place;
  private final long[] offsets;
  private final MemorySegment raw;

  /** From an element on, by its number; strides are in bytes. */
  Places(long first, long[] shape, long[] stride, long offset, Lane lane) {
    this.shape = shape;
    this.stride = stride;
    this.bytes = lane.type.bytes();
    this.index = new long[shape.length];
    this.offsets = new long[lane.room()];
    this.raw = MemorySegment.ofArray(new byte[lane.room() * bytes]);
    place = offset + at(first, shape, stride, index);
  }

  /** Where an element is, by its number. */
  static long at(long number, long[] shape, long[] stride, long[] index) {
    long rest = number;
    long result = 0;
    for (int d = 0; d < shape.length; d++) {
      index[d] = d == shape.length - 1 ? rest : rest % shape[d];
      rest = d == shape.length - 1 ? 0 : rest / shape[d];
      result += index[d] * stride[d];
    }
    return result;
  }

  /** Finds the places of the next elements; whether they lie side by side. */
  private boolean next(int count) {
    boolean isSideBySide = true;
    for (int i = 0; i < count; i++) {
      offsets[i] = place;
      isSideBySide &= i == 0 || place == offsets[i - 1] + bytes;
      step();
    }
    return isSideBySide;
  }

  private void step() {
    for (int d = 0; d < shape.length; d++) {
      place += stride[d];
      index[d]++;
      if (index[d] < shape[d] || d == shape.length - 1) {
        return;
      }
      place -= index[d] * stride[d];
      index[d] = 0;
    }
  }

  void read(Cells from, int count, Lane to) {
    if (next(count)) {
      from.read(offsets[0], raw.asSlice(0, (long) count * bytes));
    } else {
      for (int i = 0; i < count; i++) {
        if (i > 0 && offsets[i] == offsets[i - 1]) { // one value for many
          MemorySegment.copy(raw, (i - 1L) * bytes, raw, (long) i * bytes, bytes);
        } else {
          from.read(offsets[i], raw.asSlice((long) i * bytes, bytes));
        }
      }
    }
    Codec.decode(raw, count, to);
  }

  void write(Lane from, int count, Cells to) {
    Codec.encode(from, count, raw);
    if (next(count)) {
      to.write(offsets[0], raw.asSlice(0, (long) count * bytes));
    } else {
      for (int i = 0; i < count; i++) {
        to.write(offsets[i], raw.asSlice((long) i * bytes, bytes));
      }
    }
  }
}

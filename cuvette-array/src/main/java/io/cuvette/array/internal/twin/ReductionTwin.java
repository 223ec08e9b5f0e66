package io.cuvette.array.internal.twin;

import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import io.cuvette.array.ElementType;
import io.cuvette.array.Reduction;
import io.cuvette.array.internal.kernel.ReductionArgument;
import java.lang.foreign.MemorySegment;

/**
 * A kernel of reduce.cuh for one reduction and one type.
 *
 * @param reduction what is made of the elements
 * @param type their type
 */
public record ReductionTwin(Reduction reduction, ElementType type) {
  private static final int INDEX = 8;

  /** The type in which sums are kept, or the extreme element. */
  private ElementType keptType() {
    return switch (reduction) {
      case MIN, MAX, ARGMIN, ARGMAX ->
          type == ElementType.FLOAT16 || type == ElementType.BFLOAT16 ? ElementType.FLOAT32 : type;
      default -> {
        ElementType result = reduction.resultType(type);
        yield result == ElementType.FLOAT16 || result == ElementType.BFLOAT16
            ? ElementType.FLOAT32
            : result;
      }
    };
  }

  /** The size of what one part is kept in, in bytes. */
  public int partialBytes() {
    return reduction.isOfOneElement() ? INDEX + Long.BYTES : keptType().bytes();
  }

  /** Runs one pass. */
  public void run(ReductionArgument r, Cells out, Cells in) {
    long[] index = new long[r.keptShape().length];
    for (long m = 0; m < r.results(); m++) {
      long base = r.inOffset() + Places.at(m, r.keptShape(), r.keptStride(), index);
      for (long split = 0; split < r.splits(); split++) {
        Fold fold = new Fold(reduction, type);
        long first = split * r.chunk();
        long last = Math.min(first + r.chunk(), r.elements());
        if (r.fromPartial()) {
          for (long j = first; j < last; j++) {
            join(fold, in, r.inOffset() + (m * r.elements() + j) * partialBytes());
          }
        } else {
          add(fold, r, in, base, first, last);
        }
        if (r.toPartial()) {
          keep(fold, out, r.outOffset() + (m * r.splits() + split) * partialBytes());
        } else {
          long place = Places.at(m, r.keptShape(), r.outStride(), index);
          finish(fold, r.total(), out, r.outOffset() + place);
        }
      }
    }
  }

  private void add(Fold fold, ReductionArgument r, Cells in, long base, long first, long last) {
    if (first >= last) {
      return;
    }
    Lane lane = new Lane(type, (int) Math.min(Lane.MOST, last - first));
    Places places = new Places(first, r.reducedShape(), r.reducedStride(), base, lane);
    for (long j = first; j < last; j += Lane.MOST) {
      int n = (int) Math.min(Lane.MOST, last - j);
      places.read(in, n, lane);
      fold.add(lane, n, j);
    }
  }

  private void keep(Fold fold, Cells out, long at) {
    MemorySegment bytes = MemorySegment.ofArray(new long[2]).asSlice(0, partialBytes());
    Lane lane = new Lane(keptType(), 1);
    fold.put(lane);
    Codec.encode(lane, 1, bytes);
    if (reduction.isOfOneElement()) {
      bytes.set(JAVA_LONG_UNALIGNED, INDEX, fold.index());
    }
    out.write(at, bytes);
  }

  private void join(Fold fold, Cells in, long at) {
    MemorySegment bytes = MemorySegment.ofArray(new long[2]).asSlice(0, partialBytes());
    in.read(at, bytes);
    Lane lane = new Lane(keptType(), 1);
    Codec.decode(bytes, 1, lane);
    fold.join(lane, reduction.isOfOneElement() ? bytes.get(JAVA_LONG_UNALIGNED, INDEX) : 0);
  }

  private void finish(Fold fold, long total, Cells out, long at) {
    ElementType result = reduction.resultType(type);
    Lane lane = new Lane(result, 1);
    fold.finish(total, lane);
    MemorySegment bytes = MemorySegment.ofArray(new long[2]).asSlice(0, result.bytes());
    Codec.encode(lane, 1, bytes);
    out.write(at, bytes);
  }
}

package io.cuvette.array.internal.twin;

import io.cuvette.array.ElementType;
import io.cuvette.array.internal.kernel.LoopArgument;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A kernel of elements.cu for one operation and the types of its operands.
 *
 * @param result the type of the results
 * @param operands the types of the operands
 * @param function computes some elements
 */
public record ElementTwin(ElementType result, List<ElementType> operands, LaneFunction function) {

  /** Computes results of the same number of elements of each operand. Stateless. */
  @FunctionalInterface
  interface LaneFunction {
    void apply(Lane result, Lane[] operands, int count);
  }

  /** Runs over all elements; memories are of the result and of the operands that have one. */
  public void run(LoopArgument loop, List<? extends @Nullable Cells> memories) {
    int count = operands.size();
    int room = (int) Math.min(Lane.MOST, Math.max(1, loop.count()));
    Lane[] lanes = new Lane[count];
    @Nullable Places[] places = new Places[count];
    for (int k = 0; k < count; k++) {
      ElementType type = operands.get(k);
      lanes[k] = new Lane(type, room);
      if (loop.values()[k].length > 0) {
        repeat(loop.values()[k], lanes[k]);
      } else {
        places[k] =
            new Places(0, loop.shape(), loop.strides()[k + 1], loop.offsets()[k + 1], lanes[k]);
      }
    }
    Lane out = new Lane(result, room);
    Places to = new Places(0, loop.shape(), loop.strides()[0], loop.offsets()[0], out);
    for (long done = 0; done < loop.count(); done += Lane.MOST) {
      int n = (int) Math.min(Lane.MOST, loop.count() - done);
      for (int k = 0; k < count; k++) {
        Places from = places[k];
        if (from != null) {
          from.read(Objects.requireNonNull(memories.get(k + 1)), n, lanes[k]);
        }
      }
      function.apply(out, lanes, n);
      to.write(out, n, Objects.requireNonNull(memories.getFirst()));
    }
  }

  private static void repeat(long[] value, Lane lane) {
    MemorySegment one = MemorySegment.ofArray(value);
    Codec.decode(one, 1, lane);
    Arrays.fill(lane.bits, lane.isExact() ? lane.bits[0] : 0);
    Arrays.fill(lane.re, lane.isExact() ? 0 : lane.re[0]);
    Arrays.fill(lane.im, lane.isComplex() ? lane.im[0] : 0);
  }
}

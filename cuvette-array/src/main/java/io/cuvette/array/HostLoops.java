package io.cuvette.array;

import io.cuvette.array.internal.kernel.LoopArgument;
import io.cuvette.array.internal.kernel.LoopPlan;
import io.cuvette.array.internal.twin.Cells;
import io.cuvette.array.internal.twin.ElementTwin;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Runs what the kernels do on arrays of the host. Stateless. */
final class HostLoops {
  private HostLoops() {}

  /** Computes elements, of which there are some. */
  static void elements(HostArray target, ElementTwin twin, List<Operand> operands) {
    long[] shape = target.layout().sizes();
    List<@Nullable Cells> memories = new ArrayList<>();
    List<MemorySegment> segments = new ArrayList<>();
    LoopPlan.Array[] arrays = new LoopPlan.Array[operands.size() + 1];
    arrays[0] = Operand.inLoop(target.type(), target.layout(), 0);
    memories.add(Cells.of(target.segment()));
    segments.add(target.segment());
    for (int k = 0; k < operands.size(); k++) {
      arrays[k + 1] = operands.get(k).inLoop(shape);
      if (operands.get(k) instanceof Operand.Elements elements) {
        MemorySegment segment = ((HostArray) elements.array()).segment();
        memories.add(Cells.of(segment));
        segments.add(segment);
      } else {
        memories.add(null);
      }
    }
    LoopArgument loop = LoopPlan.of(shape, arrays).argument();
    HostAccess.run(() -> twin.run(loop, memories), segments.toArray(MemorySegment[]::new));
  }
}

package io.cuvette.testkit.seeds;

import io.cuvette.CudaStream;
import io.cuvette.testkit.seeds.PartedBlock.Part;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;

/**
 * What a stream or a graph does, and what becomes of the model.
 *
 * @param blocks all that it uses, the one that it writes first
 * @param reads the parts that it reads
 * @param writes the parts that it writes
 * @param queue the call that has a stream do it
 * @param effect changes the model
 */
record PartWork(
    Set<PartedBlock> blocks,
    List<Part> reads,
    List<Part> writes,
    Consumer<CudaStream> queue,
    Runnable effect) {
  /** Copies parts to as many. */
  static PartWork copying(
      PartedBlock from,
      List<Part> read,
      PartedBlock to,
      List<Part> written,
      Consumer<CudaStream> queue) {
    Set<PartedBlock> both = new LinkedHashSet<>(List.of(to));
    both.add(from);
    return new PartWork(
        both,
        read,
        written,
        queue,
        () -> {
          for (int i = 0; i < read.size(); i++) {
            written.get(i).value = read.get(i).value;
          }
        });
  }
}

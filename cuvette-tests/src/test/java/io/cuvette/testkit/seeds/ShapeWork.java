package io.cuvette.testkit.seeds;

import io.cuvette.CudaStream;
import io.cuvette.testkit.seeds.CellBlock.Use;
import io.cuvette.testkit.seeds.ShapeBlock.Cell;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/** What a stream does with cells, and what becomes of the model. Not thread-safe. */
final class ShapeWork {
  final Map<Cell, Use> uses = new LinkedHashMap<>();
  private final Consumer<CudaStream> queue;
  private final Runnable effect;

  /** Whether a graph can do it. */
  final boolean isCaptured;

  /** The device of the stream; -1 if it can be any. */
  int device = -1;

  ShapeWork(boolean isCaptured, Consumer<CudaStream> queue, Runnable effect) {
    this.isCaptured = isCaptured;
    this.queue = queue;
    this.effect = effect;
  }

  ShapeWork using(Use use, Collection<Cell> cells) {
    cells.forEach(cell -> uses.merge(cell, use, Use::of));
    return this;
  }

  ShapeWork on(int one) {
    device = Math.max(device, one);
    return this;
  }

  Set<ShapeBlock> blocks() {
    Set<ShapeBlock> blocks = new LinkedHashSet<>();
    uses.keySet().forEach(cell -> blocks.add(cell.block));
    return blocks;
  }

  void queue(CudaStream stream) {
    queue.accept(stream);
  }

  void apply() {
    effect.run();
  }

  boolean conflicts(ShapeWork other) {
    return uses.entrySet().stream()
        .anyMatch(use -> {
          Use theirs = other.uses.get(use.getKey());
          return theirs != null && theirs.conflicts(use.getValue());
        });
  }
}

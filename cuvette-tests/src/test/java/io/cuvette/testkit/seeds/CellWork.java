package io.cuvette.testkit.seeds;

import io.cuvette.driver.GraphNodeParams;
import io.cuvette.testkit.seeds.CellBlock.Cell;
import io.cuvette.testkit.seeds.CellBlock.Use;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.IntConsumer;
import java.util.function.IntFunction;
import java.util.function.ObjIntConsumer;
import org.jspecify.annotations.Nullable;

/** What a stream or a node of a graph does with a number, and what becomes of the model. */
class CellWork {
  final Map<Cell, Use> uses = new LinkedHashMap<>();
  private final IntConsumer effect;
  int number;

  /** Whether it is left as it is in executables. */
  boolean isFixed;

  boolean isEnabled = true;
  private final ObjIntConsumer<ProgramStream> queue;
  private final @Nullable IntFunction<GraphNodeParams> node;

  /** Work; without {@code node} it is no node of a graph by itself. */
  CellWork(
      int number,
      ObjIntConsumer<ProgramStream> queue,
      @Nullable IntFunction<GraphNodeParams> node,
      IntConsumer effect) {
    this.number = number;
    this.queue = queue;
    this.node = node;
    this.effect = effect;
  }

  CellWork using(Cell cell, Use use) {
    uses.merge(cell, use, Use::of);
    return this;
  }

  CellWork using(Map<Cell, Use> others) {
    others.forEach(this::using);
    return this;
  }

  CellWork fixed() {
    isFixed = true;
    return this;
  }

  void queue(ProgramStream stream) {
    queue.accept(stream, number);
  }

  boolean canBeNode() {
    return node != null;
  }

  GraphNodeParams node() {
    if (node == null) {
      throw new IllegalStateException("no node");
    }
    return node.apply(number);
  }

  void apply() {
    if (isEnabled) {
      effect.accept(number);
    }
  }

  boolean conflicts(CellWork other) {
    return uses.entrySet().stream()
        .anyMatch(use -> {
          Use theirs = other.uses.get(use.getKey());
          return theirs != null && theirs.conflicts(use.getValue());
        });
  }
}

package io.cuvette.sim.internal.graph;

import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimStream;
import java.util.ArrayList;
import java.util.List;

/** What a launch allocates and frees. Guarded by the driver's lock. */
final class LaunchMemory {
  private final List<GraphBlock> allocated = new ArrayList<>();
  private final List<GraphBlock> freed = new ArrayList<>();

  /** What the launch before left allocated, and this one frees first. */
  private final List<GraphBlock> left = new ArrayList<>();

  private LaunchMemory(ExecGraph graph) {
    graph.forEach(node -> {
      switch (node.task()) {
        case NodeTask.Allocation allocation -> allocated.add(allocation.block());
        case NodeTask.Free free -> freed.add(free.block());
        default -> {}
      }
    });
  }

  /** What the next launch allocates and frees, if it can. */
  static LaunchMemory of(SimExecutable executable, SimDevice device) {
    LaunchMemory memory = new LaunchMemory(executable.graph);
    for (GraphBlock block : memory.allocated) {
      if (block.isOpen()) {
        if ((executable.flags & SimExecutable.FREES_ON_LAUNCH) == 0) {
          throw SimRefusal.invalidValue(
              "0x%x of the launch before was not freed (expected: freed, or flag 1 of the executable)"
                  .formatted(block.address()));
        }
        memory.left.add(block);
      }
    }
    for (GraphBlock block : memory.freed) {
      if (!memory.allocated.contains(block)) {
        block.checkOpen();
      }
    }
    return memory;
  }

  /** Reserves what a launch needs. */
  static void reserve(SimExecutable executable) {
    new LaunchMemory(executable.graph).reserve();
  }

  void reserve() {
    GraphMemory.reserve(allocated);
  }

  /**
   * Queues the frees of what the launch before left, behind that launch, and counts what this one
   * allocates.
   */
  void take(SimStream stream, LaunchQueue queue) {
    for (GraphBlock block : left) {
      block.freeing();
      queue.queue(SimOp.work(stream, block::free, 0, queue.hostNanos()));
    }
    allocated.forEach(GraphBlock::launched);
    freed.forEach(GraphBlock::freeing);
  }
}

package io.cuvette.sim.internal.graph;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.memory.DeviceMemory;
import io.cuvette.sim.internal.pool.HighMark;
import io.cuvette.sim.internal.pool.PoolSpace;
import java.util.Collection;
import java.util.List;

/**
 * The memory of the graphs of a device. It grows in the steps of pools when a launch needs it, and
 * shrinks when a program asks for that. Guarded by the driver's lock.
 */
public final class GraphMemory {
  final DeviceMemory device;

  /** Of launches and of what they left allocated. */
  final HighMark used = new HighMark();

  private final HighMark reserved = new HighMark();
  private final long step;

  public GraphMemory(DeviceMemory device) {
    this.device = device;
    this.step = PoolSpace.stepOf(device.totalBytes());
  }

  static long rounded(long bytes) {
    return DeviceMemory.rounded(bytes);
  }

  /** An address for an allocation node. */
  public GraphBlock place(long bytes, List<Integer> peers, long id) {
    if (bytes <= 0) {
      throw SimRefusal.invalidValue("bytes: %d (expected: > 0)".formatted(bytes));
    }
    return new GraphBlock(device.placeOfGraph(bytes, id), this, peers);
  }

  /** Reserves what a launch needs; OUT_OF_MEMORY, before anything changed, if it is not there. */
  public static void reserve(Collection<GraphBlock> blocks) {
    List<GraphMemory> memories = blocks.stream().map(GraphBlock::memory).distinct().toList();
    for (GraphMemory memory : memories) {
      memory.grow(
          blocks.stream()
              .filter(block -> block.memory() == memory && block.isIdle())
              .mapToLong(GraphBlock::rounded)
              .sum());
    }
  }

  private void grow(long more) {
    long missing = used.bytes() + more - reserved.bytes();
    if (missing > 0) {
      long bytes = inSteps(missing);
      if (bytes > device.pages.roomBytes()) {
        throw new SimRefusal(
            CudaStatus.OUT_OF_MEMORY,
            "requested=%d, reserved=%d, used=%d bytes for graphs of device %d, free=%d"
                .formatted(
                    more,
                    reserved.bytes(),
                    used.bytes(),
                    device.device.index,
                    device.pages.roomBytes()));
      }
      change(bytes);
    }
  }

  /** As the driver counts: a step is in use if anything of it is. */
  private long inSteps(long bytes) {
    return (bytes + step - 1) / step * step;
  }

  private void change(long bytes) {
    device.pages.take(bytes);
    reserved.add(bytes);
  }

  /** Gives back what no launch uses. */
  public void trim() {
    long idle = (reserved.bytes() - used.bytes()) / step * step;
    if (idle > 0) {
      change(-idle);
    }
  }

  public long get(GraphMemAttribute attribute) {
    return switch (attribute) {
      case USED_CURRENT -> inSteps(used.bytes());
      case USED_HIGH -> inSteps(used.highest());
      case RESERVED_CURRENT -> reserved.bytes();
      case RESERVED_HIGH -> reserved.highest();
    };
  }

  public void reset(GraphMemAttribute attribute) {
    switch (attribute) {
      case USED_HIGH -> used.reset();
      case RESERVED_HIGH -> reserved.reset();
      default ->
          throw SimRefusal.invalidValue(
              "attribute: %s (expected: USED_HIGH or RESERVED_HIGH)".formatted(attribute));
    }
  }
}

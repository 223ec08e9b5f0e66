package io.cuvette.sim.internal.share;

import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.sim.internal.base.SimRefusal;

/**
 * Where a pool has its memory and of which type it is; a default and a current pool exist for each.
 * Immutable.
 *
 * @param locationType CUmemLocationType
 * @param locationId the device or node, 0 where it has no meaning
 * @param allocationType CUmemAllocationType
 */
public record PoolKind(int locationType, int locationId, int allocationType) {

  /** A kind that exists, or INVALID_VALUE with the rule. */
  public static PoolKind of(
      SimulatedOptions options, int locationType, int id, int allocationType) {
    if (allocationType != MemAllocationType.PINNED && allocationType != MemAllocationType.MANAGED) {
      throw SimRefusal.invalidValue(
          "allocation type: %d (expected: 1 pinned or 2 managed)".formatted(allocationType));
    }
    int known =
        switch (locationType) {
          case MemLocationType.NONE -> {
            if (allocationType != MemAllocationType.MANAGED) {
              throw SimRefusal.invalidValue("location type: 0 (expected: only managed memory)");
            }
            yield 0;
          }
          case MemLocationType.DEVICE -> inside("device", id, options.devices());
          case MemLocationType.HOST -> 0;
          case MemLocationType.HOST_NUMA -> inside("NUMA node", id, options.numaNodes());
          default ->
              throw SimRefusal.invalidValue(
                  "location type: %d (expected: 0 to 3)".formatted(locationType));
        };
    return new PoolKind(locationType, known, allocationType);
  }

  private static int inside(String name, int id, int count) {
    if (id < 0 || id >= count) {
      throw SimRefusal.invalidValue("%s: %d (expected: 0 to %d)".formatted(name, id, count - 1));
    }
    return id;
  }

  /** Whether the memory is that of a device, which the host cannot see. */
  public boolean isDevice() {
    return locationType == MemLocationType.DEVICE && allocationType == MemAllocationType.PINNED;
  }

  public boolean isManaged() {
    return allocationType == MemAllocationType.MANAGED;
  }

  @Override
  public String toString() {
    String place =
        switch (locationType) {
          case MemLocationType.DEVICE -> "device " + locationId;
          case MemLocationType.HOST -> "the host";
          case MemLocationType.HOST_NUMA -> "NUMA node " + locationId;
          default -> "no location";
        };
    return isManaged() ? "managed memory of " + place : place;
  }
}

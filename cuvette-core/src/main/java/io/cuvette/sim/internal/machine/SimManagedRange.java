package io.cuvette.sim.internal.machine;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.MemRangeAttribute;
import io.cuvette.internal.base.CudaVersion;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.memory.DevicePages;
import io.cuvette.sim.internal.memory.HostBlock;
import io.cuvette.sim.internal.memory.RangeAdvice;
import io.cuvette.sim.internal.memory.RangeAdvice.Advice;
import io.cuvette.sim.internal.memory.RangeAdvice.Location;
import io.cuvette.sim.internal.memory.SimPlace;
import io.cuvette.sim.internal.queue.SimDevice;
import java.util.function.Function;

/**
 * A range of managed memory with its advice and attributes. Guarded by the driver's lock.
 *
 * @param machine the driver's state
 * @param place its start
 * @param bytes its length
 */
public record SimManagedRange(SimMachine machine, SimPlace place, long bytes) {
  private static final int MIXED_DEVICE = -2;

  /** Before, the place was a device or the host as a whole. */
  private static final int NODES_SINCE = 12_020;

  public static SimManagedRange of(SimMachine machine, long address, long bytes) {
    if (bytes <= 0) {
      throw SimRefusal.invalidValue("bytes: %d (expected: > 0)".formatted(bytes));
    }
    SimPlace place = machine.place("address", address, bytes);
    if (place.block() instanceof HostBlock block && block.kind == HostBlock.Kind.MANAGED) {
      return new SimManagedRange(machine, place, bytes);
    }
    throw SimRefusal.invalidValue("address: 0x%x (expected: managed memory)".formatted(address));
  }

  public void advise(int advice, int locationType, int locationId) {
    switch (advice) {
      case 1 -> change(old -> old.withReadMostly(true));
      case 2 -> change(old -> old.withReadMostly(false));
      case 3 -> {
        Location location = location(locationType, locationId);
        change(old -> old.withPreferred(location));
      }
      case 4 -> change(old -> old.withPreferred(Location.NONE));
      case 5, 6 -> {
        Location location = location(locationType, locationId);
        if (location.type() != MemLocationType.DEVICE && location.type() != MemLocationType.HOST) {
          throw SimRefusal.invalidValue(
              "location type: %d (expected: 1 device or 2 host)".formatted(locationType));
        }
        change(old -> old.withAccessedBy(location, advice == 5));
      }
      default -> throw SimRefusal.invalidValue("advice: %d (expected: 1 to 6)".formatted(advice));
    }
  }

  public void prefetch(Location location) {
    change(old -> old.withPrefetched(location));
  }

  /** Pages come to a device; what goes to the host still counts where it was. */
  public void moveTo(Location location) {
    if (location.type() == MemLocationType.DEVICE) {
      DevicePages device = machine.memory(machine.device(location.id())).pages;
      ((HostBlock) place.block()).pages.bring(device, place.offset(), bytes);
    }
  }

  private void change(java.util.function.UnaryOperator<Advice> change) {
    advice().change(place.offset(), bytes, change);
  }

  private RangeAdvice advice() {
    return ((HostBlock) place.block()).advice;
  }

  /** A location that exists; the thread that calls is always near NUMA node 0. */
  public Location location(int type, int id) {
    return switch (type) {
      case MemLocationType.DEVICE -> new Location(type, concurrent(machine.device(id)).index);
      case MemLocationType.HOST -> new Location(MemLocationType.HOST, 0);
      case MemLocationType.HOST_NUMA -> {
        checkNodesAreKnown();
        int nodes = machine.options.numaNodes();
        if (id < 0 || id >= nodes) {
          throw SimRefusal.invalidValue(
              "NUMA node: %d (expected: 0 to %d)".formatted(id, nodes - 1));
        }
        yield new Location(MemLocationType.HOST_NUMA, id);
      }
      case MemLocationType.HOST_NUMA_CURRENT -> {
        checkNodesAreKnown();
        yield new Location(MemLocationType.HOST_NUMA, 0);
      }
      default ->
          throw SimRefusal.invalidValue("location type: %d (expected: 1 to 4)".formatted(type));
    };
  }

  /** A device that can fetch pages: the others see managed memory where it is. */
  private SimDevice concurrent(SimDevice device) {
    if (!machine.options.concurrentManaged()) {
      throw new SimRefusal(
          CudaStatus.INVALID_DEVICE,
          "device %d has no concurrent managed access".formatted(device.index));
    }
    return device;
  }

  private void checkNodesAreKnown() {
    int version = machine.options.driverVersion();
    if (version < NODES_SINCE) {
      throw new SimRefusal(
          CudaStatus.CALL_REQUIRES_NEWER_DRIVER,
          "NUMA nodes: " + CudaVersion.tooOld(version, NODES_SINCE));
    }
  }

  public int attribute(int attribute) {
    return switch (attribute) {
      case 1 -> common(advice -> advice.readMostly() ? 1 : 0, 0);
      case 2 -> common(advice -> advice.preferred().device(), MIXED_DEVICE);
      case MemRangeAttribute.ACCESSED_BY -> advice().accessedBy(place.offset(), bytes, 1)[0];
      case 4 -> common(advice -> advice.prefetched().device(), MIXED_DEVICE);
      case 5 -> common(Advice::preferred).type();
      case 6 -> common(Advice::preferred).id();
      case 7 -> common(Advice::prefetched).type();
      case 8 -> common(Advice::prefetched).id();
      default ->
          throw SimRefusal.invalidValue("attribute: %d (expected: 1 to 8)".formatted(attribute));
    };
  }

  /** An attribute as a list; all but accessed-by have one value. */
  public int[] attributes(int attribute, int count) {
    if (count <= 0 || (attribute != MemRangeAttribute.ACCESSED_BY && count != 1)) {
      throw SimRefusal.invalidValue(
          "count: %d (expected: %s)"
              .formatted(count, attribute == MemRangeAttribute.ACCESSED_BY ? "> 0" : "1"));
    }
    return attribute == MemRangeAttribute.ACCESSED_BY
        ? advice().accessedBy(place.offset(), bytes, count)
        : new int[] {attribute(attribute)};
  }

  /** The location of all pages, or none where they differ. */
  private Location common(Function<Advice, Location> location) {
    return advice().common(place.offset(), bytes, location);
  }

  private int common(java.util.function.ToIntFunction<Advice> value, int otherwise) {
    return advice().common(place.offset(), bytes, value, otherwise);
  }
}

package io.cuvette.benchmarks.facts;

import io.cuvette.DeviceAttribute;
import io.cuvette.ManagedMemoryResource;
import io.cuvette.ManagedMemoryResourceOptions;
import io.cuvette.ManagedMemoryResourceOptions.LocationType;
import io.cuvette.MemoryLocation;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;

/** The preferred location of a pool of managed memory. Not thread-safe. */
final class PreferredFacts {
  private static final String PREFIX = "managed.preferred.";

  private final Ways ways;
  private final Recorder recorder;

  PreferredFacts(Ways ways, Recorder recorder) {
    this.ways = ways;
    this.recorder = recorder;
  }

  void run() {
    prefer("none", () -> ManagedMemoryResourceOptions.DEFAULTS);
    prefer("minus_1", () -> of(null, -1));
    prefer("number_0", () -> of(null, 0));
    prefer("minus_2", () -> of(null, -2));
    prefer("device_0", () -> of(LocationType.DEVICE, 0));
    prefer("device_none", () -> without(LocationType.DEVICE));
    prefer("device_negative", () -> of(LocationType.DEVICE, -1));
    prefer("device_4096", () -> of(LocationType.DEVICE, Ways.NOT_A_DEVICE));
    prefer("host", () -> without(LocationType.HOST));
    prefer("host_0", () -> of(LocationType.HOST, 0));
    prefer("host_numa_0", () -> of(LocationType.HOST_NUMA, 0));
    prefer("host_numa_negative", () -> of(LocationType.HOST_NUMA, -1));
    prefer("host_numa_4096", () -> of(LocationType.HOST_NUMA, Ways.NOT_A_DEVICE));
    prefer("unknown_type", () -> of(LocationType.valueOf("NOWHERE"), 0));
    nodeOfDevice();
  }

  private static ManagedMemoryResourceOptions of(@Nullable LocationType type, int location) {
    return ManagedMemoryResourceOptions.of(type, location);
  }

  private static ManagedMemoryResourceOptions without(LocationType type) {
    return new ManagedMemoryResourceOptions(type, OptionalInt.empty());
  }

  private void prefer(String row, Callable<ManagedMemoryResourceOptions> options) {
    String name = PREFIX + row;
    ManagedMemoryResource resource = make(name, options);
    if (resource != null) {
      recorder.fact(name, () -> text(resource.preferredLocation()));
      rest(name, resource);
    }
  }

  private void nodeOfDevice() {
    String name = PREFIX + "host_numa_of_device";
    ManagedMemoryResource resource = make(name, () -> without(LocationType.HOST_NUMA));
    if (resource != null) {
      int node = ways.device().attribute(DeviceAttribute.HOST_NUMA_ID);
      recorder.fact(name, () -> text(resource.preferredLocation()).equals("host_numa:" + node));
      rest(name, resource);
    }
  }

  private @Nullable ManagedMemoryResource make(
      String name, Callable<ManagedMemoryResourceOptions> options) {
    return recorder.made(
        name + ".made", () -> new ManagedMemoryResource(ways.cuda(), options.call()));
  }

  private void rest(String name, ManagedMemoryResource resource) {
    recorder.fact(name + ".device_id", resource::deviceId);
    recorder.fact(
        name + ".allocates", () -> ways.filled(resource.allocate(Ways.MIB, ways.stream())));
    resource.close();
  }

  /** A location as all programs write it. */
  static String text(Optional<MemoryLocation> location) {
    return location.map(PreferredFacts::text).orElse("none");
  }

  static String text(MemoryLocation location) {
    return switch (location) {
      case MemoryLocation.Device device -> "device:" + device.id();
      case MemoryLocation.HostNuma node -> "host_numa:" + node.id();
      case MemoryLocation.Host _ -> "host";
      case MemoryLocation.HostNumaCurrent _ -> "host_numa_current";
    };
  }
}

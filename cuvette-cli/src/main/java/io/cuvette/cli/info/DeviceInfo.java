package io.cuvette.cli.info;

import io.cuvette.CudaDevice;
import io.cuvette.DeviceAttribute;
import io.cuvette.cli.Json;
import io.cuvette.cli.Sizes;
import io.cuvette.cli.Wrapped;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.driver.PriorityRange;
import java.io.PrintStream;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Collectors;

/**
 * What is shown of a device. Immutable.
 *
 * @param id its number
 * @param name its name
 * @param uuid its identity
 * @param pciBusId its address on the bus
 * @param computeCapability the generation of its instructions
 * @param simulated whether it is simulated
 * @param memory its memory
 * @param priorities the priorities of its streams
 * @param peers the devices whose memory it can address
 * @param capabilities what it can do, by name
 * @param attributes all that it answers, if wanted
 */
record DeviceInfo(
    int id,
    String name,
    UUID uuid,
    String pciBusId,
    String computeCapability,
    boolean simulated,
    MemoryInfo memory,
    PriorityRange priorities,
    List<Integer> peers,
    Map<String, Integer> capabilities,
    Map<DeviceAttribute, Integer> attributes) {

  private static final Map<String, DeviceAttribute> CAPABILITIES = new LinkedHashMap<>();

  static {
    CAPABILITIES.put("multiprocessors", DeviceAttribute.MULTIPROCESSOR_COUNT);
    CAPABILITIES.put("copyEngines", DeviceAttribute.ASYNC_ENGINE_COUNT);
    CAPABILITIES.put("unifiedAddressing", DeviceAttribute.UNIFIED_ADDRESSING);
    CAPABILITIES.put("managedMemory", DeviceAttribute.MANAGED_MEMORY);
    CAPABILITIES.put("concurrentManagedAccess", DeviceAttribute.CONCURRENT_MANAGED_ACCESS);
    CAPABILITIES.put("pageableMemoryAccess", DeviceAttribute.PAGEABLE_MEMORY_ACCESS);
    CAPABILITIES.put("memoryPools", DeviceAttribute.MEMORY_POOLS_SUPPORTED);
    CAPABILITIES.put(
        "virtualMemoryManagement", DeviceAttribute.VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED);
    CAPABILITIES.put(
        "sharingByDescriptor", DeviceAttribute.HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
    CAPABILITIES.put("sharingByFabric", DeviceAttribute.HANDLE_TYPE_FABRIC_SUPPORTED);
  }

  static DeviceInfo of(CudaDevice device, boolean all) {
    Map<DeviceAttribute, Integer> attributes = device.attributes();
    Map<String, Integer> capabilities = new LinkedHashMap<>();
    CAPABILITIES.forEach((name, key) -> capabilities.put(name, attributes.getOrDefault(key, 0)));
    return new DeviceInfo(
        device.id(),
        device.name(),
        device.uuid(),
        device.pciBusId(),
        device.computeCapability().toString(),
        device.cuda().isSimulated(),
        device.memoryInfo(),
        device.priorityRange(),
        peers(device),
        capabilities,
        all ? attributes : Map.of());
  }

  private static List<Integer> peers(CudaDevice device) {
    return device.cuda().devices().stream()
        .filter(peer -> !peer.equals(device) && device.canAccess(peer))
        .map(CudaDevice::id)
        .toList();
  }

  Json json() {
    Json json =
        new Json()
            .with("kind", "device")
            .with("id", id)
            .with("name", name)
            .with("uuid", uuid)
            .with("pciBusId", pciBusId)
            .with("computeCapability", computeCapability)
            .with("simulated", simulated)
            .with("totalBytes", memory.totalBytes())
            .with("freeBytes", memory.freeBytes())
            .with("leastPriority", priorities.least())
            .with("greatestPriority", priorities.greatest())
            .with("peers", peers)
            .with("capabilities", capabilities);
    return attributes.isEmpty() ? json : json.with("attributes", attributes);
  }

  void print(PrintStream out) {
    out.println();
    out.printf("Device %d: %s%s%n", id, name, simulated ? " (simulated)" : "");
    line(out, "uuid", uuid);
    line(out, "PCI bus id", pciBusId);
    line(out, "compute capability", computeCapability);
    line(
        out,
        "memory",
        Sizes.format(memory.totalBytes()) + ", free " + Sizes.format(memory.freeBytes()));
    line(
        out,
        "stream priorities",
        priorities.greatest() + " (most urgent) to " + priorities.least());
    String ids = peers.stream().map(String::valueOf).collect(Collectors.joining(", "));
    line(out, "peers", peers.isEmpty() ? "none" : ids);
    capabilities.forEach((name, value) -> line(out, words(name), value));
    if (!attributes.isEmpty()) {
      out.println("  attributes");
      attributes.forEach((name, value) -> out.printf("    %-50s %d%n", name, value));
    }
  }

  private static void line(PrintStream out, String name, Object value) {
    Wrapped.print(out, "  %-26s ".formatted(name), value.toString());
  }

  /** {@code copyEngines} → {@code copy engines}. */
  private static String words(String name) {
    return name.replaceAll("([A-Z])", " $1").toLowerCase(java.util.Locale.ROOT);
  }
}

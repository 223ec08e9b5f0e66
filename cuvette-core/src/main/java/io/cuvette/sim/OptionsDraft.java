package io.cuvette.sim;

import io.cuvette.internal.base.ByteSize;
import io.cuvette.sim.internal.base.SettingText;
import java.util.List;

/** Simulated options while they are changed. Not thread-safe. */
final class OptionsDraft {
  private static final List<String> KEYS =
      List.of(
          "devices",
          "memory",
          "context",
          "others",
          "seed",
          "pace",
          "order",
          "peers",
          "concurrentManaged",
          "virtualMemory",
          "driver",
          "numaNodes");

  int devices;
  long memoryBytes;
  long seed;
  String peers;
  int driverVersion;
  int numaNodes;
  SimulatedPace pace;
  SimulatedOrder order;
  long contextBytes;
  long othersBytes;
  boolean concurrentManaged;
  boolean virtualMemory;

  OptionsDraft(SimulatedOptions options) {
    this.devices = options.devices();
    this.memoryBytes = options.memoryBytes();
    this.seed = options.seed();
    this.peers = options.peers();
    this.driverVersion = options.driverVersion();
    this.numaNodes = options.numaNodes();
    this.pace = options.pace();
    this.order = options.order();
    this.contextBytes = options.contextBytes();
    this.othersBytes = options.othersBytes();
    this.concurrentManaged = options.concurrentManaged();
    this.virtualMemory = options.virtualMemory();
  }

  /** Reads the value of a setting. */
  void set(String key, String value) {
    switch (key) {
      case "devices" ->
          devices = (int) SettingText.number(key, value, 1, SimulatedOptions.MAX_DEVICES);
      case "memory" -> memoryBytes = ByteSize.parse(key, value);
      case "context" -> contextBytes = ByteSize.parse(key, value);
      case "others" -> othersBytes = ByteSize.parse(key, value);
      case "seed" -> seed = SettingText.number(key, value, Long.MIN_VALUE, Long.MAX_VALUE);
      case "pace" -> pace = SettingText.constant(key, value, SimulatedPace.values());
      case "order" -> order = SettingText.constant(key, value, SimulatedOrder.values());
      case "peers" -> peers = value;
      case "concurrentManaged" -> concurrentManaged = SettingText.flag(key, value);
      case "virtualMemory" -> virtualMemory = SettingText.flag(key, value);
      case "driver" -> driverVersion = (int) SettingText.number(key, value, 1000, 99_990);
      case "numaNodes" ->
          numaNodes = (int) SettingText.number(key, value, 1, SimulatedOptions.MAX_NODES);
      default ->
          throw new IllegalArgumentException(
              "unknown setting: '%s' (expected: %s)".formatted(key, String.join(", ", KEYS)));
    }
  }

  /** The options, checked. */
  SimulatedOptions options() {
    return new SimulatedOptions(
        devices,
        memoryBytes,
        seed,
        peers,
        driverVersion,
        numaNodes,
        pace,
        order,
        contextBytes,
        othersBytes,
        concurrentManaged,
        virtualMemory);
  }
}

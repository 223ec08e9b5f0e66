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
          "queues",
          "queueLength",
          "queuePatience",
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
  int queues;
  int queueLength;
  int queuePatienceMillis;

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
    this.queues = options.queues();
    this.queueLength = options.queueLength();
    this.queuePatienceMillis = options.queuePatienceMillis();
  }

  /** Reads the value of a setting. */
  void set(String key, String value) {
    switch (key) {
      case "devices" -> devices = number(key, value, 1, SimulatedOptions.MAX_DEVICES);
      case "memory" -> memoryBytes = ByteSize.parse(key, value);
      case "context" -> contextBytes = ByteSize.parse(key, value);
      case "others" -> othersBytes = ByteSize.parse(key, value);
      case "seed" -> seed = SettingText.number(key, value, Long.MIN_VALUE, Long.MAX_VALUE);
      case "pace" -> pace = SettingText.constant(key, value, SimulatedPace.values());
      case "order" -> order = SettingText.constant(key, value, SimulatedOrder.values());
      case "peers" -> peers = value;
      case "concurrentManaged" -> concurrentManaged = SettingText.flag(key, value);
      case "virtualMemory" -> virtualMemory = SettingText.flag(key, value);
      case "queues" ->
          queues =
              (int)
                  SettingText.numberOr(
                      "seed", SimulatedOptions.BY_SEED, key, value, 0, SimulatedOptions.MAX_QUEUES);
      case "queueLength" -> queueLength = number(key, value, 1, SimulatedOptions.MAX_QUEUE_LENGTH);
      case "queuePatience" ->
          queuePatienceMillis = number(key, value, 1, SimulatedOptions.MAX_PATIENCE_MILLIS);
      case "driver" -> driverVersion = number(key, value, 11_000, 99_990);
      case "numaNodes" -> numaNodes = number(key, value, 1, SimulatedOptions.MAX_NODES);
      default ->
          throw new IllegalArgumentException(
              "unknown setting: '%s' (expected: %s)".formatted(key, String.join(", ", KEYS)));
    }
  }

  private static int number(String key, String value, int min, int max) {
    return (int) SettingText.number(key, value, min, max);
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
        virtualMemory,
        queues,
        queueLength,
        queuePatienceMillis);
  }
}

package io.cuvette.sim;

import io.cuvette.internal.ByteSize;
import java.util.HashSet;
import java.util.Objects;
import java.util.Set;

/**
 * What a simulated driver simulates. Immutable.
 *
 * @param devices number of devices, 1 to 32
 * @param memoryBytes memory of each device, 1 MiB to 8 TiB
 * @param seed chooses when queued work runs and how streams interleave; the same seed and program
 *     give the same run
 * @param peers which devices can address each other's memory: {@code all}, {@code none}, or pairs
 *     such as {@code 0-1+2-3}, both ways each
 * @param driverVersion the CUDA version, 1000 × major + 10 × minor, 1000 to 99990
 * @param numaNodes NUMA nodes of the host, 1 to 64; a device is next to the node of its number,
 *     counted around
 * @param pace when queued work runs
 * @param order which stream runs next
 */
public record SimulatedOptions(
    int devices,
    long memoryBytes,
    long seed,
    String peers,
    int driverVersion,
    int numaNodes,
    SimulatedPace pace,
    SimulatedOrder order) {

  /**
   * One device of 143771 MiB (an H200), seed 0, all devices peers, CUDA 13.0, one NUMA node, pace
   * and order by the seed.
   */
  public static final SimulatedOptions DEFAULTS =
      new SimulatedOptions(1, 143_771L << 20, 0, "all", 13_000, 1);

  /** The most devices there can be: what the simulated addresses have room for. */
  static final int MAX_DEVICES = 32;

  private static final int MAX_NODES = 64;
  private static final long MIN_MEMORY = 1L << 20;
  private static final long MAX_MEMORY = 1L << 43;

  /**
   * Checks the values.
   *
   * @throws IllegalArgumentException naming the value and the rule
   */
  public SimulatedOptions {
    Objects.requireNonNull(peers, "peers");
    Objects.requireNonNull(pace, "pace");
    Objects.requireNonNull(order, "order");
    check(1 <= devices && devices <= MAX_DEVICES, "devices", devices, "1 to " + MAX_DEVICES);
    check(
        MIN_MEMORY <= memoryBytes && memoryBytes <= MAX_MEMORY,
        "memory",
        memoryBytes,
        "1 MiB to 8 TiB, in bytes");
    check(
        1000 <= driverVersion && driverVersion <= 99_990 && driverVersion % 10 == 0,
        "driver",
        driverVersion,
        "1000 × major + 10 × minor, such as 13000");
    check(1 <= numaNodes && numaNodes <= MAX_NODES, "numaNodes", numaNodes, "1 to " + MAX_NODES);
    PeerRule.parse(peers, devices);
  }

  /** Leaves pace and order to the seed. */
  public SimulatedOptions(
      int devices, long memoryBytes, long seed, String peers, int driverVersion, int numaNodes) {
    this(
        devices,
        memoryBytes,
        seed,
        peers,
        driverVersion,
        numaNodes,
        SimulatedPace.SEED,
        SimulatedOrder.SEED);
  }

  /**
   * Reads settings such as {@code devices=2,memory=80GiB,seed=7}. Without {@code seed}, the system
   * property {@code cuvette.seed} gives the seed.
   *
   * <table>
   * <caption>Keys</caption>
   * <tr><th>key</th><th>value</th><th>default</th></tr>
   * <tr><td>{@code devices}</td><td>1 to 32</td><td>1</td></tr>
   * <tr><td>{@code memory}</td><td>a number of bytes, or one with a unit: B, KiB, MiB, GiB, TiB,
   *     KB, MB, GB, TB, K, M, G or T</td><td>143771MiB</td></tr>
   * <tr><td>{@code seed}</td><td>any 64-bit number</td><td>{@code cuvette.seed}, or 0</td></tr>
   * <tr><td>{@code peers}</td><td>{@code all}, {@code none}, or pairs such as {@code 0-1+2-3}</td>
   *     <td>{@code all}</td></tr>
   * <tr><td>{@code driver}</td><td>1000 × major + 10 × minor</td><td>13000</td></tr>
   * <tr><td>{@code numaNodes}</td><td>1 to 64</td><td>1</td></tr>
   * <tr><td>{@code pace}</td><td>{@code seed}, {@code eager}, {@code lazy} or {@code mixed}</td>
   *     <td>{@code seed}</td></tr>
   * <tr><td>{@code order}</td><td>{@code seed}, {@code priority}, {@code fair} or {@code random}
   *     </td><td>{@code seed}</td></tr>
   * </table>
   *
   * @throws IllegalArgumentException naming the key, the value and the rule
   */
  public static SimulatedOptions parse(String settings) {
    Objects.requireNonNull(settings, "settings");
    SimulatedOptions options = DEFAULTS;
    Set<String> seen = new HashSet<>();
    if (!settings.isBlank()) {
      for (String part : settings.split(",", -1)) {
        String[] pair = part.split("=", 2);
        check(pair.length == 2, "setting", "'" + part + "'", "key=value");
        String key = pair[0].strip();
        check(seen.add(key), key, "'" + pair[1] + "'", "to be given once");
        // The peers are checked against the number of devices, which may come after them.
        options = key.equals("peers") ? options : options.with(key, pair[1].strip());
      }
    }
    options = seen.contains("seed") ? options : options.withSeed(seedOfProperty());
    return seen.contains("peers") ? options.withPeers(valueOf(settings, "peers")) : options;
  }

  PeerRule peerRule() {
    return PeerRule.parse(peers, devices);
  }

  private static String valueOf(String settings, String key) {
    for (String part : settings.split(",", -1)) {
      String[] pair = part.split("=", 2);
      if (pair[0].strip().equals(key)) {
        return pair[1].strip();
      }
    }
    throw new AssertionError(key);
  }

  private static long seedOfProperty() {
    String seed = System.getProperty("cuvette.seed");
    return seed == null || seed.isBlank()
        ? DEFAULTS.seed
        : SettingText.number("-Dcuvette.seed", seed.strip(), Long.MIN_VALUE, Long.MAX_VALUE);
  }

  private SimulatedOptions with(String key, String value) {
    return switch (key) {
      case "devices" -> withDevices((int) SettingText.number(key, value, 1, MAX_DEVICES));
      case "memory" -> withMemoryBytes(ByteSize.parse(key, value));
      case "seed" -> withSeed(SettingText.number(key, value, Long.MIN_VALUE, Long.MAX_VALUE));
      case "driver" -> withDriverVersion((int) SettingText.number(key, value, 1000, 99_990));
      case "numaNodes" -> withNumaNodes((int) SettingText.number(key, value, 1, MAX_NODES));
      case "pace" -> withPace(SettingText.constant(key, value, SimulatedPace.values()));
      case "order" -> withOrder(SettingText.constant(key, value, SimulatedOrder.values()));
      default ->
          throw new IllegalArgumentException(
              "unknown setting: '%s' (expected: devices, memory, seed, peers, driver, %s)"
                  .formatted(key, "numaNodes, pace, order"));
    };
  }

  /** These options with another number of devices. */
  public SimulatedOptions withDevices(int devices) {
    return new SimulatedOptions(
        devices, memoryBytes, seed, peers, driverVersion, numaNodes, pace, order);
  }

  /** These options with another memory for each device, in bytes. */
  public SimulatedOptions withMemoryBytes(long memoryBytes) {
    return new SimulatedOptions(
        devices, memoryBytes, seed, peers, driverVersion, numaNodes, pace, order);
  }

  /** These options with another seed. */
  public SimulatedOptions withSeed(long seed) {
    return new SimulatedOptions(
        devices, memoryBytes, seed, peers, driverVersion, numaNodes, pace, order);
  }

  /**
   * These options with other peers: {@code all}, {@code none}, or pairs such as {@code 0-1+2-3}.
   */
  public SimulatedOptions withPeers(String peers) {
    Objects.requireNonNull(peers, "peers");
    return new SimulatedOptions(
        devices, memoryBytes, seed, peers, driverVersion, numaNodes, pace, order);
  }

  /** These options with another CUDA version, 1000 × major + 10 × minor. */
  public SimulatedOptions withDriverVersion(int driverVersion) {
    return new SimulatedOptions(
        devices, memoryBytes, seed, peers, driverVersion, numaNodes, pace, order);
  }

  /** These options with another number of NUMA nodes of the host. */
  public SimulatedOptions withNumaNodes(int numaNodes) {
    return new SimulatedOptions(
        devices, memoryBytes, seed, peers, driverVersion, numaNodes, pace, order);
  }

  /** These options with another time at which queued work runs. */
  public SimulatedOptions withPace(SimulatedPace pace) {
    return new SimulatedOptions(
        devices, memoryBytes, seed, peers, driverVersion, numaNodes, pace, order);
  }

  /** These options with another order of streams. */
  public SimulatedOptions withOrder(SimulatedOrder order) {
    return new SimulatedOptions(
        devices, memoryBytes, seed, peers, driverVersion, numaNodes, pace, order);
  }

  private static void check(boolean valid, String key, Object value, String rule) {
    if (!valid) {
      throw new IllegalArgumentException("%s: %s (expected: %s)".formatted(key, value, rule));
    }
  }
}

package io.cuvette.sim;

import io.cuvette.sim.internal.base.Addresses;
import io.cuvette.sim.internal.base.SettingText;
import io.cuvette.sim.internal.memory.DevicePages;
import io.cuvette.sim.internal.pool.PeerRule;
import java.util.HashSet;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;

/**
 * What a simulated driver simulates. Immutable.
 *
 * @param devices number of devices, 1 to 32
 * @param memoryBytes memory of each device, 2 MiB (one page of the driver) to 8 TiB
 * @param seed chooses when queued work runs and how streams interleave; the same seed and program
 *     give the same run
 * @param peers which devices can address each other's memory: {@code all}, {@code none}, or pairs
 *     such as {@code 0-1+2-3}, both ways each
 * @param driverVersion the CUDA version, 1000 × major + 10 × minor, 11000 to 99990
 * @param numaNodes NUMA nodes of the host, 1 to 64; a device is next to the node of its number,
 *     counted around
 * @param pace when queued work runs
 * @param order which stream runs next
 * @param contextBytes what a context takes of its device's memory, >= 0; −1 for as much as on an
 *     H200, in proportion
 * @param othersBytes what other processes have of each device's memory, >= 0
 * @param concurrentManaged whether the host may touch managed memory while devices work on it
 * @param virtualMemory whether the devices can map memory into reserved addresses
 * @param queues queues of the hardware, 1 to 32, which the streams of a device take in turn: work
 *     behind a wait or a host function of one stream waits too if it is of another stream; 0 for
 *     one queue for each stream; −1 for 0 or 8, by the seed
 * @param queueLength how many operations a queue has before a call that queues more waits for room,
 *     1 to 1,048,576
 * @param queuePatienceMillis after how many milliseconds in which nothing moved a device fails
 *     whose shared queues hold work of several streams up, 1 to 86,400,000
 */
public record SimulatedOptions(
    int devices,
    long memoryBytes,
    long seed,
    String peers,
    int driverVersion,
    int numaNodes,
    SimulatedPace pace,
    SimulatedOrder order,
    long contextBytes,
    long othersBytes,
    boolean concurrentManaged,
    boolean virtualMemory,
    int queues,
    int queueLength,
    int queuePatienceMillis) {

  /**
   * One device of 143156 MiB (an H200) with its context and no other process, seed 0, all devices
   * peers, CUDA 13.0, one NUMA node, pace and order by the seed, concurrent managed access, virtual
   * memory, queues of 1,024 operations, as many as the seed says.
   */
  public static final SimulatedOptions DEFAULTS =
      new SimulatedOptions(1, 143_156L << 20, 0, "all", 13_000, 1);

  /** The most devices there can be: what the simulated addresses have room for. */
  static final int MAX_DEVICES = Addresses.MAX_DEVICES;

  static final int MAX_NODES = 64;

  static final int MAX_QUEUES = 32;
  static final int MAX_QUEUE_LENGTH = 1 << 20;
  static final int MAX_PATIENCE_MILLIS = 86_400_000;

  /** Each stream has its own queue, or they share 8, as the seed says. */
  static final int BY_SEED = -1;

  /** What a device specification has before the settings. */
  private static final String PREFIX = "sim:";

  private static final int QUEUE_LENGTH = 1024;
  private static final int PATIENCE_MILLIS = 10_000;

  /** The context takes what it does on an H200, in proportion. */
  private static final long AS_MEASURED = -1;

  private static final long MIN_MEMORY = DevicePages.PAGE;
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
        "2 MiB to 8 TiB, in bytes");
    check(
        11_000 <= driverVersion && driverVersion <= 99_990 && driverVersion % 10 == 0,
        "driver",
        driverVersion,
        "1000 × major + 10 × minor, 11000 to 99990");
    check(1 <= numaNodes && numaNodes <= MAX_NODES, "numaNodes", numaNodes, "1 to " + MAX_NODES);
    check(contextBytes >= AS_MEASURED, "context", contextBytes, ">= 0, in bytes; -1 as measured");
    check(othersBytes >= 0, "others", othersBytes, ">= 0, in bytes");
    long taken = Math.max(contextBytes, 0) + othersBytes;
    check(
        0 <= taken && taken <= memoryBytes,
        contextBytes < 0 ? "others" : "context: %d, others".formatted(contextBytes),
        othersBytes,
        "at most the memory, %d%s".formatted(memoryBytes, contextBytes < 0 ? "" : ", together"));
    check(
        BY_SEED <= queues && queues <= MAX_QUEUES,
        "queues",
        queues,
        "0 to " + MAX_QUEUES + "; -1 by the seed");
    check(
        1 <= queueLength && queueLength <= MAX_QUEUE_LENGTH,
        "queueLength",
        queueLength,
        "1 to " + MAX_QUEUE_LENGTH);
    check(
        1 <= queuePatienceMillis && queuePatienceMillis <= MAX_PATIENCE_MILLIS,
        "queuePatience",
        queuePatienceMillis,
        "1 to " + MAX_PATIENCE_MILLIS + ", in milliseconds");
    PeerRule.parse(peers, devices);
  }

  /**
   * Leaves pace, order, queues and what the context takes as they are by default.
   *
   * @param devices the number of devices, 1 to 32
   * @param memoryBytes the memory of each device in bytes, 2 MiB to 8 TiB
   * @param seed the seed
   * @param peers {@code all}, {@code none}, or pairs such as {@code 0-1+2-3}
   * @param driverVersion the CUDA version, 1000 × major + 10 × minor
   * @param numaNodes the number of NUMA nodes of the host, 1 to 64
   */
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
        SimulatedOrder.SEED,
        AS_MEASURED,
        0,
        true,
        true,
        BY_SEED,
        QUEUE_LENGTH,
        PATIENCE_MILLIS);
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
   *     KB, MB, GB, TB, K, M, G or T</td><td>143156MiB</td></tr>
   * <tr><td>{@code context}</td><td>bytes of each device that its context takes, as {@code
   *     memory}</td><td>1/272 of the memory</td></tr>
   * <tr><td>{@code others}</td><td>bytes of each device that other processes have</td>
   *     <td>0</td></tr>
   * <tr><td>{@code seed}</td><td>any 64-bit number</td><td>{@code cuvette.seed}, or 0</td></tr>
   * <tr><td>{@code peers}</td><td>{@code all}, {@code none}, or pairs such as {@code 0-1+2-3}</td>
   *     <td>{@code all}</td></tr>
   * <tr><td>{@code driver}</td><td>1000 × major + 10 × minor</td><td>13000</td></tr>
   * <tr><td>{@code numaNodes}</td><td>1 to 64</td><td>1</td></tr>
   * <tr><td>{@code concurrentManaged}</td><td>{@code true} or {@code false}: whether the host may
   *     touch managed memory while devices work on it</td><td>{@code true}</td></tr>
   * <tr><td>{@code virtualMemory}</td><td>{@code true} or {@code false}: whether the devices can
   *     map memory into reserved addresses</td><td>{@code true}</td></tr>
   * <tr><td>{@code queues}</td><td>queues that streams share, 1 to 32; 0 for one for each stream;
   *     {@code seed} for 0 or 8</td><td>{@code seed}</td></tr>
   * <tr><td>{@code queueLength}</td><td>operations in a queue before calls wait for room, 1 to
   *     1048576</td><td>1024</td></tr>
   * <tr><td>{@code queuePatience}</td><td>milliseconds after which queues that stand still fail
   *     the device, 1 to 86400000</td><td>10000</td></tr>
   * <tr><td>{@code pace}</td><td>{@code seed}, {@code eager}, {@code lazy} or {@code mixed}</td>
   *     <td>{@code seed}</td></tr>
   * <tr><td>{@code order}</td><td>{@code seed}, {@code priority}, {@code fair} or {@code random}
   *     </td><td>{@code seed}</td></tr>
   * </table>
   *
   * @param settings settings of a device specification, separated by commas, without its {@code
   *     sim:}
   * @return the options, with defaults for what the settings leave out
   * @throws IllegalArgumentException naming the key, the value and the rule
   */
  public static SimulatedOptions parse(String settings) {
    Objects.requireNonNull(settings, "settings");
    check(
        !settings.strip().startsWith(PREFIX),
        "settings",
        "'" + settings + "'",
        "what follows '" + PREFIX + "' in a device specification");
    OptionsDraft draft = new OptionsDraft(DEFAULTS);
    draft.seed = seedOfProperty();
    Set<String> seen = new HashSet<>();
    if (!settings.isBlank()) {
      for (String part : settings.split(",", -1)) {
        String[] pair = part.split("=", 2);
        check(pair.length == 2, "setting", "'" + part + "'", "key=value");
        String key = pair[0].strip();
        check(seen.add(key), key, "'" + pair[1] + "'", "to be given once");
        draft.set(key, pair[1].strip());
      }
    }
    return draft.options();
  }

  private static long seedOfProperty() {
    String seed = System.getProperty("cuvette.seed");
    return seed == null || seed.isBlank()
        ? DEFAULTS.seed
        : SettingText.number("-Dcuvette.seed", seed.strip(), Long.MIN_VALUE, Long.MAX_VALUE);
  }

  /**
   * {@return these options with another number of devices}
   *
   * @param devices the number of devices, 1 to 32
   */
  public SimulatedOptions withDevices(int devices) {
    return with(draft -> draft.devices = devices);
  }

  /**
   * {@return these options with another memory for each device, in bytes}
   *
   * @param memoryBytes the memory of each device in bytes, 2 MiB to 8 TiB
   */
  public SimulatedOptions withMemoryBytes(long memoryBytes) {
    return with(draft -> draft.memoryBytes = memoryBytes);
  }

  /**
   * {@return these options with another seed}
   *
   * @param seed the seed
   */
  public SimulatedOptions withSeed(long seed) {
    return with(draft -> draft.seed = seed);
  }

  /**
   * {@return these options with other peers: {@code all}, {@code none}, or pairs such as {@code
   * 0-1+2-3}}
   *
   * @param peers {@code all}, {@code none}, or pairs such as {@code 0-1+2-3}
   */
  public SimulatedOptions withPeers(String peers) {
    Objects.requireNonNull(peers, "peers");
    return with(draft -> draft.peers = peers);
  }

  /**
   * {@return these options with another CUDA version, 1000 × major + 10 × minor}
   *
   * @param driverVersion the CUDA version, 1000 × major + 10 × minor
   */
  public SimulatedOptions withDriverVersion(int driverVersion) {
    return with(draft -> draft.driverVersion = driverVersion);
  }

  /**
   * {@return these options with another number of NUMA nodes of the host}
   *
   * @param numaNodes the number of NUMA nodes of the host, 1 to 64
   */
  public SimulatedOptions withNumaNodes(int numaNodes) {
    return with(draft -> draft.numaNodes = numaNodes);
  }

  /**
   * {@return these options with another time at which queued work runs}
   *
   * @param pace when queued work runs
   */
  public SimulatedOptions withPace(SimulatedPace pace) {
    Objects.requireNonNull(pace, "pace");
    return with(draft -> draft.pace = pace);
  }

  /**
   * {@return these options with another order of streams}
   *
   * @param order which stream runs next
   */
  public SimulatedOptions withOrder(SimulatedOrder order) {
    Objects.requireNonNull(order, "order");
    return with(draft -> draft.order = order);
  }

  /**
   * {@return these options with another number of bytes that a context takes of its device's
   * memory}
   *
   * @param contextBytes the bytes that a context takes of its device's memory, >= 0
   */
  public SimulatedOptions withContextBytes(long contextBytes) {
    return with(draft -> draft.contextBytes = contextBytes);
  }

  /**
   * {@return these options with another number of bytes that other processes have of each device's
   * memory}
   *
   * @param othersBytes the bytes that other processes have of each device's memory, >= 0
   */
  public SimulatedOptions withOthersBytes(long othersBytes) {
    return with(draft -> draft.othersBytes = othersBytes);
  }

  /**
   * {@return these options with or without managed memory that the host may touch while devices
   * work on it}
   *
   * @param concurrentManaged whether the host may touch managed memory while devices work on it
   */
  public SimulatedOptions withConcurrentManaged(boolean concurrentManaged) {
    return with(draft -> draft.concurrentManaged = concurrentManaged);
  }

  /**
   * {@return these options with or without devices that can map memory into reserved addresses}
   *
   * @param virtualMemory whether the devices can map memory into reserved addresses
   */
  public SimulatedOptions withVirtualMemory(boolean virtualMemory) {
    return with(draft -> draft.virtualMemory = virtualMemory);
  }

  /**
   * {@return these options with another number of queues that streams share, as on a GPU}
   *
   * @param queues the number of queues of each device, 1 to 32 (a GPU has 8 by default); 0 for one
   *     for each stream; −1 for 0 or 8, by the seed
   */
  public SimulatedOptions withQueues(int queues) {
    return with(draft -> draft.queues = queues);
  }

  /**
   * {@return these options with queues of another length}
   *
   * @param queueLength how many operations a queue has before calls wait for room, 1 to 1,048,576
   */
  public SimulatedOptions withQueueLength(int queueLength) {
    return with(draft -> draft.queueLength = queueLength);
  }

  /**
   * {@return these options with another time after which shared queues that stand still fail the
   * device}
   *
   * @param queuePatienceMillis the time in milliseconds, 1 to 86,400,000
   */
  public SimulatedOptions withQueuePatienceMillis(int queuePatienceMillis) {
    return with(draft -> draft.queuePatienceMillis = queuePatienceMillis);
  }

  private SimulatedOptions with(Consumer<OptionsDraft> change) {
    OptionsDraft draft = new OptionsDraft(this);
    change.accept(draft);
    return draft.options();
  }

  private static void check(boolean valid, String key, Object value, String rule) {
    if (!valid) {
      throw new IllegalArgumentException("%s: %s (expected: %s)".formatted(key, value, rule));
    }
  }
}

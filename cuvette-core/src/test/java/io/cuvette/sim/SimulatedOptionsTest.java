package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaDriverProvider;
import java.lang.reflect.RecordComponent;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.ServiceLoader;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Settings: what they mean, and that a wrong one says what is wrong. */
class SimulatedOptionsTest {

  @Test
  void everyKey_isRead_inAnyOrder() {
    assertThat(
            SimulatedOptions.parse(
                "peers=0-1+1-2, devices=3,memory=80GiB,driver=12060,seed=-7,numaNodes=2"))
        .isEqualTo(new SimulatedOptions(3, 80L << 30, -7, "0-1+1-2", 12_060, 2));
  }

  @Test
  void queues_areReadAsTheyAreSet() {
    assertThat(SimulatedOptions.parse("seed=0,queues=8,queueLength=64,queuePatience=1500"))
        .isEqualTo(
            SimulatedOptions.DEFAULTS
                .withQueues(8)
                .withQueueLength(64)
                .withQueuePatienceMillis(1500));
    assertThat(SimulatedOptions.parse("seed=0,queues=seed")).isEqualTo(SimulatedOptions.DEFAULTS);
  }

  @Test
  void wordThatIsNone_isRefusedWithAllThatAre() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> SimulatedOptions.parse("pace=quick"))
        .withMessageContaining("quick")
        .withMessageContaining("eager")
        .withMessageContaining("lazy");
  }

  @Test
  void nothing_isTheDefaults() {
    long seed = Long.getLong("cuvette.seed", 0);
    assertThat(SimulatedOptions.parse(" ")).isEqualTo(SimulatedOptions.DEFAULTS.withSeed(seed));
  }

  @ParameterizedTest
  @CsvSource({
    "2097152, 2097152",
    "2097152B, 2097152",
    "2048KiB, 2097152",
    "2MiB, 2097152",
    "1.5GiB, 1610612736",
    "2 gib, 2147483648",
    "2G, 2147483648",
    "1TiB, 1099511627776",
    "8TiB, 8796093022208",
    "3000KB, 3000000",
    "3MB, 3000000",
    "4GB, 4000000000",
    "5TB, 5000000000000",
  })
  void sizes_haveUnits(String text, long bytes) {
    assertThat(SimulatedOptions.parse("memory=" + text).memoryBytes()).isEqualTo(bytes);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "colour=red | unknown setting: 'colour' (expected: devices, memory, context, others,",
        "devices | setting: 'devices' (expected: key=value)",
        "devices=1, | setting: '' (expected: key=value)",
        "devices=0 | devices: '0' (expected: a number from 1 to 32)",
        "devices=33 | devices: '33' (expected: a number from 1 to 32)",
        "devices=two | devices: 'two' (expected: a number from 1 to 32)",
        "devices=1,devices=2 | devices: '2' (expected: to be given once)",
        "memory=12 parsecs | memory: '12 parsecs' (expected: a size with a unit of B, KiB, MiB,",
        "memory=-1GiB | memory: '-1GiB' (expected: a size with a unit of B, KiB, MiB,",
        "memory=1B | memory: 1 (expected: 2 MiB to 8 TiB, in bytes)",
        "memory=2097151 | memory: 2097151 (expected: 2 MiB to 8 TiB, in bytes)",
        "memory=99999999TiB | memory: '99999999TiB' (expected: less than 8 EiB)",
        "memory=1048576.5 | memory: '1048576.5' (expected: whole bytes)",
        "memory=50% | memory: '50%' (expected: a size with a unit of B, KiB, MiB,",
        "memory=0 | memory: 0 (expected: 2 MiB to 8 TiB, in bytes)",
        "seed=1.5 | seed: '1.5' (expected: a 64-bit number)",
        "seed= | seed: '' (expected: a 64-bit number)",
        "context=-1 | context: '-1' (expected: a size with a unit of B, KiB, MiB,",
        "memory=1GiB,others=2GiB | others: 2147483648 (expected: at most the memory, 1073741824)",
        "sim:devices=2 | settings: 'sim:devices=2' (expected: what follows 'sim:' in a device spec",
        "' sim:devices=2' | settings: ' sim:devices=2' (expected: what follows 'sim:' in a device",
        "sim: | settings: 'sim:' (expected: what follows 'sim:' in a device specification)",
        "concurrentManaged=yes | concurrentManaged: 'yes' (expected: true or false)",
        "peers=some | peers: 'some' (expected: all, none, or pairs such as 0-1+2-3)",
        "peers=0-1 | peers: '0-1' (expected: pairs of two different devices from 0 to 0)",
        "queues=33 | queues: '33' (expected: seed, or a number from 0 to 32)",
        "queues=-1 | queues: '-1' (expected: seed, or a number from 0 to 32)",
        "queueLength=0 | queueLength: '0' (expected: a number from 1 to 1048576)",
        "queuePatience=0 | queuePatience: '0' (expected: a number from 1 to 86400000)",
        "numaNodes=0 | numaNodes: '0' (expected: a number from 1 to 64)",
        "driver=12 | driver: '12' (expected: a number from 11000 to 99990)",
        "driver=12061 | driver: 12061 (expected: 1000 × major + 10 × minor, 11000 to 99990)",
      })
  void wrongSetting_namesKeyValueAndRule(String settings, String message) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new SimulatedDriverProvider().open(settings))
        .withMessageStartingWith(message);
  }

  @Test
  void contextAndOthersAboveTheMemory_areNamedEachWithItsFigure() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> SimulatedOptions.parse("memory=4MiB,context=3MiB,others=2MiB"))
        .withMessage(
            "context: 3145728, others: 2097152 (expected: at most the memory, 4194304, together)");
    assertThatIllegalArgumentException()
        .isThrownBy(
            () -> SimulatedOptions.DEFAULTS.withOthersBytes(1).withContextBytes(Long.MAX_VALUE))
        .withMessageStartingWith("context: 9223372036854775807, others: 1 (expected: at most");
    refused(
        "context: 0, others: 5242880 (expected: at most the memory, 4194304, together)",
        () -> SimulatedOptions.parse("memory=4MiB,context=0,others=5MiB"));
    refused(
        "others: 5242880 (expected: at most the memory, 4194304)",
        () -> SimulatedOptions.parse("memory=4MiB,others=5MiB"));
  }

  @Test
  void driver_hasTheSettingsThatItWasOpenedWith() {
    SimulatedOptions options = SimulatedOptions.parse("devices=3,memory=80MiB,seed=-7,pace=lazy");
    try (SimulatedDriver driver = SimulatedDriver.open(options)) {
      assertThat(driver.options()).isEqualTo(options);
    }
  }

  @Test
  void provider_isFoundByName() {
    CudaDriverProvider provider =
        ServiceLoader.load(CudaDriverProvider.class).stream()
            .map(ServiceLoader.Provider::get)
            .filter(found -> found.name().equals("sim"))
            .findFirst()
            .orElseThrow();
    assertThat(provider.isAvailable()).isTrue();
    try (CudaDriver driver = provider.open("devices=2")) {
      assertThat(driver.name()).isEqualTo("sim");
      assertThat(driver.isSimulated()).isTrue();
      assertThat(driver.devices().deviceGetCount()).isEqualTo(2);
    }
  }

  @Test
  void leastAndMostOfEachNumber_areAllowed() {
    SimulatedOptions least =
        SimulatedOptions.parse("devices=1,memory=2MiB,driver=11000,numaNodes=1,others=0");
    assertThat(least.memoryBytes()).isEqualTo(2L << 20);
    assertThat(least.driverVersion()).isEqualTo(11_000);
    SimulatedOptions most = SimulatedOptions.parse("memory=8TiB,driver=99990");
    assertThat(most.memoryBytes()).isEqualTo(8L << 40);
    assertThat(most.driverVersion()).isEqualTo(99_990);
  }

  @Test
  void eachKey_isRead_withoutTheOthers() {
    SimulatedOptions none = SimulatedOptions.DEFAULTS;
    Map<String, SimulatedOptions> settings =
        Map.ofEntries(
            Map.entry("devices=2", none.withDevices(2)),
            Map.entry("memory=4MiB", none.withMemoryBytes(4 << 20)),
            Map.entry("context=3MiB", none.withContextBytes(3 << 20)),
            Map.entry("others=5MiB", none.withOthersBytes(5 << 20)),
            Map.entry("pace=lazy", none.withPace(SimulatedPace.LAZY)),
            Map.entry("order=fair", none.withOrder(SimulatedOrder.FAIR)),
            Map.entry("peers=none", none.withPeers("none")),
            Map.entry("driver=12080", none.withDriverVersion(12_080)),
            Map.entry("numaNodes=3", none.withNumaNodes(3)),
            Map.entry("concurrentManaged=false", none.withConcurrentManaged(false)),
            Map.entry("virtualMemory=false", none.withVirtualMemory(false)),
            Map.entry("queues=0", none.withQueues(0)),
            Map.entry("queueLength=7", none.withQueueLength(7)),
            Map.entry("queuePatience=9", none.withQueuePatienceMillis(9)));
    settings.forEach((text, expected) -> {
      assertThat(SimulatedOptions.parse("seed=0," + text)).isEqualTo(expected).isNotEqualTo(none);
      assertThat(SimulatedOptions.parse(text + ",seed=8")).isEqualTo(expected.withSeed(8));
    });
  }

  private static void refused(String message, ThrowingCallable call) {
    assertThatIllegalArgumentException().isThrownBy(call).withMessageStartingWith(message);
  }

  @Test
  void numbersOutOfTheirRange_areRefused_whereverTheyAreSet() {
    SimulatedOptions none = SimulatedOptions.DEFAULTS;
    refused("devices: 0", () -> none.withDevices(0));
    refused("devices: 33", () -> none.withDevices(33));
    refused("memory: 2097151", () -> none.withMemoryBytes((2 << 20) - 1));
    refused("memory: 8796093022209", () -> none.withMemoryBytes((8L << 40) + 1));
    refused("driver: 10990", () -> none.withDriverVersion(10_990));
    refused("driver: 100000", () -> none.withDriverVersion(100_000));
    refused("driver: 13005", () -> none.withDriverVersion(13_005));
    refused("numaNodes: 0", () -> none.withNumaNodes(0));
    refused("numaNodes: 65", () -> none.withNumaNodes(65));
    refused("context: -2", () -> none.withContextBytes(-2));
    refused("others: -1 (expected: >= 0", () -> none.withContextBytes(5).withOthersBytes(-1));
    refused("queues: -2", () -> none.withQueues(-2));
    refused("queues: 33", () -> none.withQueues(33));
    refused("queueLength: 0", () -> none.withQueueLength(0));
    refused("queueLength: 1048577", () -> none.withQueueLength((1 << 20) + 1));
    refused("queuePatience: 0", () -> none.withQueuePatienceMillis(0));
    refused("queuePatience: 86400001", () -> none.withQueuePatienceMillis(86_400_001));
  }

  @Test
  void numbersAtTheEndsOfTheirRange_areAllowed() {
    SimulatedOptions least =
        new SimulatedOptions(1, 2 << 20, Long.MIN_VALUE, "all", 11_000, 1)
            .withContextBytes(-1)
            .withOthersBytes(2 << 20)
            .withQueues(-1)
            .withQueueLength(1)
            .withQueuePatienceMillis(1);
    assertThat(least.othersBytes()).isEqualTo(least.memoryBytes());
    SimulatedOptions most =
        new SimulatedOptions(32, 8L << 40, Long.MAX_VALUE, "all", 99_990, 64)
            .withContextBytes(4L << 40)
            .withOthersBytes(4L << 40)
            .withQueues(32)
            .withQueueLength(1 << 20)
            .withQueuePatienceMillis(86_400_000);
    assertThat(most.devices()).isEqualTo(32);
    assertThat(most.withContextBytes(0).withOthersBytes(0).queues()).isEqualTo(32);
  }

  @Test
  void typesOfParameters_haveBytes_andAlignmentsThatArePowersOfTwo() {
    for (int bytes : new int[] {0, -1, Integer.MIN_VALUE}) {
      refused("byteSize: " + bytes, () -> SimulatedParameter.struct(bytes, 4));
    }
    for (int alignment : new int[] {0, 3, 12, -4, Integer.MIN_VALUE}) {
      refused("alignment: " + alignment, () -> SimulatedParameter.struct(8, alignment));
    }
    assertThat(SimulatedParameter.struct(1, 1).byteSize()).isEqualTo(1);
    assertThat(SimulatedParameter.struct(3, 16).alignment()).isEqualTo(16);
  }

  /** One setting changes that one: all others are what they were, and none is left out. */
  @Test
  void eachSetting_isChangedAlone() throws ReflectiveOperationException {
    SimulatedOptions all =
        SimulatedOptions.parse(
            "devices=3,memory=80MiB,seed=-7,peers=0-1,driver=12060,numaNodes=2,pace=lazy,order=fair,"
                + "context=1MiB,others=2MiB,concurrentManaged=false,virtualMemory=false,queues=3,"
                + "queueLength=5,queuePatience=9");
    SimulatedOptions none = SimulatedOptions.DEFAULTS;
    for (RecordComponent changed : SimulatedOptions.class.getRecordComponents()) {
      String name = changed.getName();
      Object value = changed.getAccessor().invoke(none);
      assertThat(changed.getAccessor().invoke(all)).as(name).isNotEqualTo(value);
      if (name.equals("devices") || name.equals("peers")) {
        continue; // which depend on each other
      }
      String setter = "with" + name.substring(0, 1).toUpperCase(Locale.ROOT) + name.substring(1);
      Object other = SimulatedOptions.class.getMethod(setter, changed.getType()).invoke(all, value);
      for (RecordComponent each : SimulatedOptions.class.getRecordComponents()) {
        Object expected = each.getAccessor().invoke(each.getName().equals(name) ? none : all);
        assertThat(each.getAccessor().invoke(other)).as(name).isEqualTo(expected);
      }
    }
    assertThat(all.withPeers("all").withDevices(5).withDevices(3).withPeers("0-1")).isEqualTo(all);
  }

  @Test
  void propertyForTheSeed_isANumber_orNothing() {
    String before = System.getProperty("cuvette.seed");
    try {
      System.setProperty("cuvette.seed", " -12 ");
      assertThat(SimulatedOptions.parse("").seed()).isEqualTo(-12);
      assertThat(SimulatedOptions.parse("seed=3").seed()).isEqualTo(3);
      for (String blank : List.of("", " ", "\t")) {
        System.setProperty("cuvette.seed", blank);
        assertThat(SimulatedOptions.parse("")).isEqualTo(SimulatedOptions.DEFAULTS);
      }
      System.setProperty("cuvette.seed", "x");
      refused("-Dcuvette.seed: 'x'", () -> SimulatedOptions.parse(""));
    } finally {
      if (before == null) {
        System.clearProperty("cuvette.seed");
      } else {
        System.setProperty("cuvette.seed", before);
      }
    }
  }
}

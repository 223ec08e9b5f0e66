package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaDriverProvider;
import java.util.ServiceLoader;
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
        "driver=12 | driver: '12' (expected: a number from 1000 to 99990)",
        "driver=12061 | driver: 12061 (expected: 1000 × major + 10 × minor, such as 13000)",
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
        SimulatedOptions.parse("devices=1,memory=2MiB,driver=1000,numaNodes=1,others=0");
    assertThat(least.memoryBytes()).isEqualTo(2L << 20);
    assertThat(least.driverVersion()).isEqualTo(1000);
    SimulatedOptions most = SimulatedOptions.parse("memory=8TiB,driver=99990");
    assertThat(most.memoryBytes()).isEqualTo(8L << 40);
    assertThat(most.driverVersion()).isEqualTo(99_990);
  }
}

package io.cuvette.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.Cuda;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class UsageTest {
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '"',
      textBlock =
          """
          ""                                  | no command given (expected: info, demo
          nonsense                            | unknown command 'nonsense' (expected: info, demo
          nonsense info --device sim          | unknown command 'nonsense' (expected: info, demo
          --nonsense                          | unknown option '--nonsense' (expected: info, demo, replay, bench
          info --nonsense                     | unknown option '--nonsense' (expected: --attributes,
          info extra                          | one argument too many: 'extra' (expected: --attributes,
          info --device                       | --device
          info --device nonsense              | 'nonsense' (expected: gpu, sim, or sim:devices=2
          info --device sim:nonsense=1        | unknown setting: 'nonsense' (expected: devices,
          info --device sim:devices=0         | devices: '0' (expected: a number from 1 to 32)
          info --device sim:memory=lots       | memory: 'lots' (expected: a size
          info --device sim:driver=1000       | driver: '1000' (expected: a number from 11000 to 99990)
          info --device gpu:one               | 'gpu:one' (expected: gpu, sim, or sim:devices=2
          info --device gpu:-1                | 'gpu:-1' (expected: gpu, sim, or sim:devices=2
          help nonsense                       | unknown command 'nonsense' (expected: info, demo
          demo extra                          | extra
          example                             | no example named (expected: memory-pool, limits,
          example nonsense                    | unknown example 'nonsense' (expected: memory-pool
          example --list limits               | expected: one of them
          bench                               | no suite named (expected: pools, fragmentation, driver
          bench nonsense                      | unknown suite 'nonsense' (expected: pools, fragmentation, driver
          bench driver --pool memory          | --pool with driver (expected: with pools or fragmentation)
          bench pools --seed 2                | --seed with pools (expected: with fragmentation)
          bench fragmentation --seed x        | '--seed': 'x' (expected: a 64-bit number)
          bench fragmentation --pool pinned   | the pool pinned (expected: memory, elastic, async, direct)
          bench pools --pool rubber           | 'rubber' (expected: memory, elastic, async, pinned, direct)
          bench pools --pool ,                | '--pool': none (expected: memory, elastic, async, pinned, direct)
          bench fragmentation --pool ,        | '--pool': none (expected: memory, elastic, async, direct)
          replay                              | FILE
          replay f --pool ,                   | '--pool': none (expected: memory, elastic, async, direct)
          replay f --pool rubber              | 'rubber' (expected: memory, elastic, async, direct)
          replay f --pool MEMORY              | 'MEMORY' (expected: memory, elastic, async, direct)
          replay f --stream-mode all          | 'all' (expected: recorded, single, turning:N
          replay f --stream-mode turning:0    | 'turning:0' (expected: recorded, single, turning:N
          replay f --stream-mode turning:1025 | N from 1 to 1024
          replay f --repeat 0                 | '--repeat': '0' (expected: a number from 1 to
          replay f --repeat x                 | '--repeat': 'x' (expected: a number from 1 to
          replay f --repeat 2147483648        | '2147483648' (expected: a number from 1 to 2147483647)
          replay f --limit lots               | 'lots' (expected: bytes such as 2GiB, a multiple
          replay f --limit 0                  | '0' (expected: bytes such as 2GiB, a multiple
          replay f --limit 0x                 | '0x' (expected: bytes such as 2GiB, a multiple
          replay f --limit 50%                | '50%' (expected: bytes such as 2GiB, a multiple
          replay f --limit 1.03x+             | '1.03x+' (expected: bytes such as 2GiB, a multiple
          replay f --limit -1x                | '-1x' (expected: bytes such as 2GiB, a multiple
          replay f --limit 1x+8GB --pool direct | --limit with the pool direct, which has none
          replay f --timeline 5               | --timeline without --json
          replay f --timeline 0 --json        | '--timeline': '0' (expected: a number from 1 to 100000)
          replay f --timeline 100001 --json   | '--timeline': '100001' (expected: a number from 1 to
          """)
  void badUsage_isOneLineAndExitCode2(String arguments, String message) {
    Run run = Run.of(arguments.isEmpty() ? new String[0] : arguments.split(" "));
    assertThat(run.code()).as(run.err()).isEqualTo(2);
    assertThat(run.out()).isEmpty();
    assertThat(run.err()).startsWith("cuvette: ").contains(message).endsWith("--help)\n");
    assertThat(run.err().lines()).hasSize(1);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "--help",
        "help",
        "info -h",
        "info --help",
        "help info",
        "demo -h",
        "help demo",
        "replay -h",
        "help replay",
        "bench -h",
        "help bench",
        "example -h",
        "help example",
        "help help"
      })
  void help_isPrinted(String arguments) {
    Run run = Run.of(arguments.split(" "));
    assertThat(run.code()).isZero();
    assertThat(run.out()).contains("Usage: cuvette");
    assertThat(run.err()).isEmpty();
  }

  @Test
  void version_namesCuvetteAndJava() {
    Run run = Run.of("--version");
    assertThat(run.code()).isZero();
    assertThat(run.out()).startsWith("cuvette ").contains("Java 25");
  }

  @Test
  void verbose_showsWhereAnErrorCameFrom() {
    String[] arguments = {"replay", "no-such-file.csv", "--device", "sim"};
    assertThat(Run.of(arguments).err()).isEqualTo("cuvette: no-such-file.csv: no such file\n");
    Run verbose = Run.of("replay", "no-such-file.csv", "--device", "sim", "--verbose");
    assertThat(verbose.code()).isEqualTo(1);
    assertThat(verbose.err()).contains("\tat ");
  }

  @Test
  void gpuWithoutOne_failsAndSaysWhatToDo() {
    assumeFalse(Cuda.isAvailable());
    Run run = Run.of("info", "--device", "gpu");
    assertThat(run.code()).isEqualTo(1);
    assertThat(run.out()).isEmpty();
    assertThat(run.err().lines()).hasSize(1);
    assertThat(run.err()).startsWith("cuvette: ").contains("--device sim");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "nonsense | 2 | cuvette: CUVETTE_DEVICE: device: 'nonsense' (expected: gpu, sim, or",
        "sim:devices=0 | 2 | cuvette: CUVETTE_DEVICE: devices: '0' (expected: a number from 1",
        "gpu:x | 2 | cuvette: CUVETTE_DEVICE: device: 'gpu:x' (expected: gpu, sim, or"
      })
  void wrongDeviceOfTheEnvironment_isNamed(String device, int code, String message)
      throws Exception {
    Run run = JvmRun.of(Map.of("CUVETTE_DEVICE", device), null, "info");
    assertThat(run.code()).as(run.err()).isEqualTo(code);
    assertThat(run.err()).startsWith(message).hasLineCount(1);
    Run other = JvmRun.of(Map.of("CUVETTE_DEVICE", device), null, "info", "--device", "sim");
    assertThat(other.code()).as("--device wins: %s", other.err()).isZero();
  }

  @Test
  void temporaryFolderThatIsNotThere_isNamed() throws Exception {
    Run run =
        JvmRun.of(
            Map.of("JDK_JAVA_OPTIONS", "-Djava.io.tmpdir=/nowhere"),
            null,
            "example",
            "ipc",
            "--device",
            "sim");
    assertThat(run.code()).as(run.err()).isEqualTo(1);
    assertThat(run.err()).contains("-Djava.io.tmpdir:").contains("'/nowhere'");
  }

  @Test
  void wrongDeviceOfTheProperty_isNamed() {
    String before = System.getProperty("cuvette.device");
    try {
      Run run = Run.of("info", "-D", "cuvette.device=nonsense");
      assertThat(run.code()).isEqualTo(2);
      assertThat(run.err()).startsWith("cuvette: -Dcuvette.device: device: 'nonsense'");
    } finally {
      restore(before);
    }
  }

  @Test
  void wrongDriverLibrary_isNamed_insteadOfADeviceThatIsSimulated() throws Exception {
    assumeFalse(System.getenv().containsKey("CUVETTE_DEVICE"));
    Run run = JvmRun.of(Map.of(), null, "info", "-D", "cuvette.libcuda=/nowhere/libcuda.so");
    assertThat(run.code()).as(run.err()).isEqualTo(1);
    assertThat(run.err())
        .contains("-Dcuvette.libcuda: ", "/nowhere/libcuda.so")
        .endsWith("for this command: --device sim\n");
  }

  @ParameterizedTest
  @ValueSource(strings = {"cuvette.nonsense=1", "cuvette.Seed=1", "cuvette.=1"})
  void unknownProperty_isNamed(String property) {
    Run run = Run.of("info", "--device", "sim", "-D", property);
    assertThat(run.code()).as(run.err()).isEqualTo(2);
    assertThat(run.err())
        .contains("-D: unknown property '" + property.split("=")[0] + "' (expected: cuvette.cache,")
        .hasLineCount(1);
    assertThat(System.getProperty(property.split("=")[0])).isNull();
  }

  @Test
  void propertiesOfTheGuide_areKnown() throws Exception {
    String root = System.getProperty("cuvette.root");
    assumeTrue(root != null, "the sources are not here");
    List<String> named =
        Pattern.compile("`(cuvette(\\.[a-z]+)+)`")
            .matcher(Files.readString(Path.of(root, "docs/guide/limits.md")))
            .results()
            .map(match -> match.group(1))
            .toList();
    assertThat(named).hasSizeGreaterThan(8);
    assertThat(CommonOptions.PROPERTIES).containsAll(named);
  }

  @Test
  void wrongLimitOfTheEnvironment_isNamedAlone() throws Exception {
    Run run =
        JvmRun.of(
            Map.of("CUVETTE_GPU_MEMORY_LIMIT", "lots", "CUVETTE_DEVICE", "sim"), null, "info");
    assertThat(run.code()).isEqualTo(2);
    assertThat(run.err()).startsWith("cuvette: CUVETTE_GPU_MEMORY_LIMIT: 'lots'");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "info --device sim",
        "info --device sim --json",
        "example limits --device sim",
        "demo --device sim --json",
        "--help"
      })
  @EnabledOnOs(OS.LINUX)
  void fullDisk_isAFailure(String arguments) throws Exception {
    Run run = JvmRun.of(Map.of(), new File("/dev/full"), arguments.split(" "));
    assertThat(run.code()).isEqualTo(1);
    assertThat(run.err()).startsWith("cuvette: standard output cannot be written").hasLineCount(1);
  }

  @Test
  void withoutADevice_theSimulatedOneIsAnnouncedOnStandardError() {
    assumeFalse(Cuda.isAvailable());
    assumeFalse(System.getenv().containsKey("CUVETTE_DEVICE"));
    assumeFalse(System.getProperties().containsKey("cuvette.device"));
    Run run = Run.of("info", "--json");
    assertThat(run.code()).isZero();
    assertThat(run.err()).contains("simulated device").hasLineCount(1);
    assertThat(run.json()).isNotEmpty();
  }

  @Test
  void deviceOfTheProcess_isRespected() {
    String before = System.getProperty("cuvette.device");
    try {
      Run run = Run.of("info", "-D", "cuvette.device=sim:devices=3", "--json");
      assertThat(run.code()).isZero();
      assertThat(run.err()).isEmpty();
      assertThat(run.json().getFirst()).containsEntry("devices", 3L);
    } finally {
      restore(before);
    }
  }

  private static void restore(String device) {
    if (device == null) {
      System.clearProperty("cuvette.device");
    } else {
      System.setProperty("cuvette.device", device);
    }
  }
}
